"""BuildRequest of the TRAIN machine."""
