"""A workload's history: everything in its ledger, as page, Markdown and JSON."""
