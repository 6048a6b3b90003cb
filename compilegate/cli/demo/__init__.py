"""``compilegate demo`` and ``compilegate demo-production``."""
