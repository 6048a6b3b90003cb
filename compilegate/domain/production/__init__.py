"""Production under the flag: its runs, which arm each trains, and what becomes of a promotion."""
