"""Runs any training script as one arm; see compilegate_runtime/launch.py."""

from compilegate_runtime.launch import main

if __name__ == "__main__":
    main()
