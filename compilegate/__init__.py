"""Compilegate: measures a training job with a graph compiler on and off, and decides."""

__version__ = "0.2.0"
