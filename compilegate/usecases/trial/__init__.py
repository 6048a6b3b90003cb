"""The steps of a trial, one file each: what it reads, what follows, what it writes."""
