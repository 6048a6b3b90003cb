"""Names of the metrics that a deployment counts and watches."""

NAMESPACE = "Compilegate"
STAGE = "Stage"
# A production run whose flag could not be followed: unreadable, malformed, not what the ledger
# says, or of overrides that do not fit.
FLAG_PROBLEMS = "FlagProblems"
