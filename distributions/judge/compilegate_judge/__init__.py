"""The judge by itself: `compilegate judge` decides, explains, plans a proof and replays."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
