"""``compilegate register``."""
