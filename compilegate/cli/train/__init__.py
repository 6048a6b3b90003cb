"""``compilegate train``."""
