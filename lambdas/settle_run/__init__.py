"""Settles one run that has ended: its outcome, and what of the round can no longer matter."""
