"""Cleans up after a trial that failed, timed out or was stopped."""
