"""The laptop's door to the domain: commands and what they print."""
