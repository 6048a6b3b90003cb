"""Renders the trial's report."""
