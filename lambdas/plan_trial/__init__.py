"""Fixes arms, rounds and cost, or refuses."""
