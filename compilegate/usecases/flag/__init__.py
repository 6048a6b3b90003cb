"""Changing the flag, by a decision approved or by a person."""
