"""Pure functions from samples or a kernel matrix to coefficients: each sample as a combination of others."""
