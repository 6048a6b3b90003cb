"""Experiment trackers that `compilegate export` writes to; it finds them by their entry points."""
