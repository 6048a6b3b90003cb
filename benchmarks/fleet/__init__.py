"""What a fleet of workloads takes: the daily sweep, the digest, list, status and statement."""
