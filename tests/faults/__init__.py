"""Faults put into whole executions of the two state machines, one at a time.

``python -m tests.faults`` tries every fault of the table; README.md says how it works.
"""
