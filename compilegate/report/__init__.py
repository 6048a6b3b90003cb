"""A trial's report, the history of a workload, and the messages about both."""
