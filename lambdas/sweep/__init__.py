"""Once a day: stop jobs and release leases that no running execution answers for."""
