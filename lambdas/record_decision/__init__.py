"""Writes the decision into the ledger."""
