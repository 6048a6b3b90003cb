"""The catalogue of faults and sound compilations by which the equivalence check is measured."""
