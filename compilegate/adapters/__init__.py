"""AWS behind the ports; the embedded cloud answers the same calls."""
