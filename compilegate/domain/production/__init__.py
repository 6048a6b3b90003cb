"""Production under the flag: its runs, which arm each trains, and what happens to a promotion."""
