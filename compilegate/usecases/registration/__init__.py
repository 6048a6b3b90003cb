"""What production trains: registering, retiring, uploading what a workload needs."""
