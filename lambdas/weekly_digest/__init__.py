"""Tells every owner what their week was like."""
