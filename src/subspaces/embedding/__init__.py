"""Affinity graph → spectral embedding, of all points or of micro-clusters."""
