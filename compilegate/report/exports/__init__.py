"""A trial's decision in the formats of tools that teams look at anyway."""
