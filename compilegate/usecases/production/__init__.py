"""The steps of a production run: flag, request, record, review."""
