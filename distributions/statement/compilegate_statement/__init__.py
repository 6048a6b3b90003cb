"""A month's money for finance: `compilegate statement`."""
