"""How often the judge is right, by simulation: workloads of known truth, every rule applied."""
