"""Why a decision is what it is: every number with its formula, inputs and plain words."""
