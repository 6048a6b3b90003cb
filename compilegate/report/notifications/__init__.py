"""Every message that people and programs receive, one file per occasion."""
