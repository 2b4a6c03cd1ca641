"""Parts of ``benchmarks/automatic.py``."""
