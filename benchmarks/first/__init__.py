"""Training scripts of public repositories, unchanged, through ``compilegate first``."""
