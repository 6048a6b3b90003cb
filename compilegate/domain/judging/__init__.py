"""What decides: evidence in, one decision with its reasons out."""
