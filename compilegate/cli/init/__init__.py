"""``compilegate init``: a workload file from a script."""
