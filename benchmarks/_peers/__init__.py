"""Parts of ``benchmarks/peers.py``: data sets, methods, one measured run, marks, tables and plots."""
