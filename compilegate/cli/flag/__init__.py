"""``compilegate flag``."""
