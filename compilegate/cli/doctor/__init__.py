"""``compilegate doctor``."""
