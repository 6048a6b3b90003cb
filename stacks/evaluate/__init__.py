"""The EVALUATE state machine: its definition in the Amazon States Language, and its resources.

The definition is plain data made from ARNs (``definition.py``), so that it can be read, checked
and run without the CDK.
"""
