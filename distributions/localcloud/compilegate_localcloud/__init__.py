"""The embedded AWS: an emulator that runs the real app, and real training jobs, on a laptop."""
