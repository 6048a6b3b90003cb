"""Training tests: the runtime alone, and whole jobs in the training environment."""
