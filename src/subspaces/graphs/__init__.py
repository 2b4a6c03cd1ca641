"""Pure functions from coefficients or samples to an affinity graph."""
