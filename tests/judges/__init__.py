"""Makes the archives of ``compilegate/judges`` and proves what they are.

    python -m tests.judges archive COMMIT   archive the judge of a commit, under its own version
    python -m tests.judges differ VERSION   where today's judge decides otherwise than that one

Archive before a change that makes judges decide otherwise, and raise ``JUDGE_VERSION`` with it.
"""
