"""What decides: pure functions and frozen values, standard library only."""
