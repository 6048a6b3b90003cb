"""Judges the trial so far and asks for the next jobs."""
