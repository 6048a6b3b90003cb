"""``compilegate judge``."""
