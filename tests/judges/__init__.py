"""Makes the archives of ``compilegate/judges`` and proves what they are.

    python -m tests.judges COMMIT     archive the judge of a commit, under its own version

Do so before a change that makes judges decide otherwise, and raise ``JUDGE_VERSION`` with it.
"""
