"""What the ledger stores: one frozen type per kind of entry, with its reader and its writer."""
