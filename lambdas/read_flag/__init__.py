"""ReadFlag of the TRAIN machine."""
