"""What production trains: registering and retiring a workload, uploading what it needs."""
