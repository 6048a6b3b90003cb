"""The ``compilegate`` command: a folder or file for each command, its screen beside it."""
