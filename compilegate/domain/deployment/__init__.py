"""Whether an AWS account and network can run what a deployment starts."""
