"""Flips the workload's flag as the decision says."""
