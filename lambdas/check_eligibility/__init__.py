"""Decides whether a compiler could apply and pay at all."""
