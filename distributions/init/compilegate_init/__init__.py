"""Writes a workload file from a training script, which is read and not run: `compilegate init`."""
