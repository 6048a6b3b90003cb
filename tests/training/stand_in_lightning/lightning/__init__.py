"""Stands in for Lightning, which the training environment lacks: what its hooks are called with."""
