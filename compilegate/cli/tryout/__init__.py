"""``compilegate try``: two steps of every arm on this machine."""
