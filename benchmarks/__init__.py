"""Measurements of speed, size and memory; ratios in one run, results written as data."""
