"""Lets production carry a round of the trial's full runs."""
