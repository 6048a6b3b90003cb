"""The report's charts: one function per figure, drawn as SVG by ``svg``."""
