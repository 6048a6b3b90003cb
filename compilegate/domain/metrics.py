"""Names of the metrics that a deployment counts and watches."""

NAMESPACE = "Compilegate"
STAGE = "Stage"
# A production run whose flag could not be followed: unreadable, malformed, not what the ledger
# says, or of overrides that do not fit.
FLAG_PROBLEMS = "FlagProblems"
# Written once a day; each is about the 24 hours before (domain/production/summaries.py).
# Decisions are counted by verdict.
VERDICT = "Verdict"
DECISIONS = "Decisions"
TRIAL_USD = "TrialUsd"
PRODUCTION_RUNS = "ProductionRuns"
FAILED_RUNS = "FailedRuns"
WAITED_RUNS = "WaitedRuns"
PRODUCTION_USD = "ProductionUsd"
SAVED_USD = "SavedUsd"
FLAGS_ON = "FlagsOn"
