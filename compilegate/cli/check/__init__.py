"""``compilegate check``."""
