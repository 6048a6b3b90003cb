"""Rules that people use to decide on a change, and the judge, on real repeated runs."""
