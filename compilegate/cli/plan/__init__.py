"""``compilegate plan``."""
