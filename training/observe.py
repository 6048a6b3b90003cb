"""Watches an unchanged training script for a few steps; see compilegate_runtime/observing."""

from compilegate_runtime.observing.run import main

if __name__ == "__main__":
    main()
