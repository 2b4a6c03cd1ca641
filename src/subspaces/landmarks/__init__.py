"""Pure functions that cluster all samples by a few landmarks."""
