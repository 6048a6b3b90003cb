"""The TRAIN state machine: one execution takes one production run to its record."""
