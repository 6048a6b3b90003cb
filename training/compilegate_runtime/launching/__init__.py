"""Runs somebody's own training script as an arm: its arguments, its steps, its model, its metrics.

Nothing of the script is changed. What torch offers hooks for is hooked; for the rest a function
of torch is replaced by one that notes what it was given and calls it.
"""
