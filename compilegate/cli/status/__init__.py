"""``compilegate status``."""
