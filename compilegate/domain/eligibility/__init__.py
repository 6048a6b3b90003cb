"""Whether a compiler could apply and pay, before anything is spent."""
