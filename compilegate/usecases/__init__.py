"""What the pipeline does, one use case per file; Lambdas and the command call the same.

The packages ``trial``, ``production`` and ``registration`` know nothing of each other. What several
of them read, write or follow lies beside them: records, registrations, jobs, canary rounds, plans.
"""
