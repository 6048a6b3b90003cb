"""Keeping a deployment in order: the daily sweep, its figures, draining before an end."""
