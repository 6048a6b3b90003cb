"""Keeping a deployment in order: the daily sweep and its figures."""
