"""Takes the workload's lease."""
