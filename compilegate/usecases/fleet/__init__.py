"""Rows and months of all workloads: kept as their ledgers change, repaired once a day."""
