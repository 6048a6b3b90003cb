"""Runs an unchanged script briefly and writes a workload file of what was seen."""
