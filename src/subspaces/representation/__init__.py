"""X or K → C: self-expression coefficients, one file per family, pure functions on arrays."""
