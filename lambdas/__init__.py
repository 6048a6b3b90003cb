"""What the deployed functions run: ``handlers.py`` is the table of steps, ``logs.py`` their log."""
