"""All workloads of a stage: what is kept of each, and their months in money."""
