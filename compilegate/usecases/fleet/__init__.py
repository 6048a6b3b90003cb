"""Rows of all workloads of a stage."""
