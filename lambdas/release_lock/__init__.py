"""Gives the workload's lease back."""
