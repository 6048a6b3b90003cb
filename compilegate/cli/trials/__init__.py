"""Starting trials and runs, and following them on the screen."""
