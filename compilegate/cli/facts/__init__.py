"""``compilegate facts``."""
