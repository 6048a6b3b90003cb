"""Ends what a deployment runs or holds: `compilegate drain` and `compilegate unlock`."""
