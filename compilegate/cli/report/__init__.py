"""``compilegate report``."""
