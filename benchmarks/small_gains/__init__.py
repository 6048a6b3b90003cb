"""Whether gains of a few per cent are proven, by walls and blocks of real repeated runs."""
