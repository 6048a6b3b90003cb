"""For who runs a deployment: `compilegate synth`, `drain` and `unlock`."""
