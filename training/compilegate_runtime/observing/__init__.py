"""Watches an unchanged training script for a few steps, for ``compilegate first``.

    python observe.py SETTINGS SCRIPT ARGUMENTS…

The script runs with its own arguments, in the folder and with the rights of the command. What it
does is written to one JSON file as it is seen, so that a script that is killed leaves it too.
"""
