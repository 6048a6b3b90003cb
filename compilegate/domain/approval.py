"""How a promotion waits for a person (production/history.py: Approval).

The ledger keeps the question, a token for each attempt of the state machine at waiting, and one
answer. The answer that was written first stands, whoever gives it.
"""

from __future__ import annotations

# A month: long enough for holidays, short enough that the evidence is still today's.
WAIT_SECONDS = 30 * 24 * 3600
# Who answers where no person does.
NOBODY, STOPPED = "nobody", "evaluate"
