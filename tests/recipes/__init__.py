"""The recipes of docs/flag-in-your-pipeline.md, run by the tools that they are for."""
