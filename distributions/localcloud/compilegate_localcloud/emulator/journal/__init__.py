"""What a killed emulator leaves to the next one: its state on disk, written before it answers."""
