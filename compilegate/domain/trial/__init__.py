"""A running trial: its plan, the records of its jobs, its evidence and its next round."""
