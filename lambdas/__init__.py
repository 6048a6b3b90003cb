"""One folder per function; each handler parses, calls one use case and serialises."""
