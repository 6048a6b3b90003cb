"""Decisions for CI systems, dashboards and experiment trackers: `compilegate export`."""
