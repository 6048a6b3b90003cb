"""What people's accounts hold: generated training jobs of known truth, for `discover`."""
