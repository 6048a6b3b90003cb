"""Says why a training job failed and stops the trial's others."""
