"""How much evaluating an expression may cost at most, before it has ever run."""
