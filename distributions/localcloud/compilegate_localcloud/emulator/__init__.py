"""The AWS that runs on a laptop; runs in its own environment, apart from the tool's.

Of the rest of compilegate it may import `place.py` alone: that environment holds only the
emulator's own dependencies.
"""
