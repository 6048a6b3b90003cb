"""What a team says about one training job: the workload file, read and checked."""
