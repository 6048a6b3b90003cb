"""``compilegate drain``."""
