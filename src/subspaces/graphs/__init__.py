"""Coefficients → affinity graph: truncation, the published treatments, and graphs that fall apart."""
