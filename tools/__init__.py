"""Tools of the maintainers; no part of any wheel."""
