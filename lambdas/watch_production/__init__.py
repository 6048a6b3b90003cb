"""Watch of the TRAIN machine."""
