"""Runs an unchanged training script as an arm: its arguments, its steps, its model, its metrics.

Torch's hooks are used where it has any; elsewhere a function of torch is replaced by one that
records its arguments and calls it.
"""
