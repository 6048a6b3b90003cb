"""The AWS that runs on a laptop; runs in its own environment, apart from the tool's.

Nothing here may import the rest of compilegate: that environment holds only the
emulator's own dependencies.
"""
