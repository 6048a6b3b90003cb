"""Writes a workload file from a training script, read (`init`) or run briefly (`first`)."""
