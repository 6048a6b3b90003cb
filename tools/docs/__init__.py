"""Writes the parts of pages, and the examples, that are made from code and data."""
