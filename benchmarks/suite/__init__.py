"""Time and peak memory of every leg, for asv: a regression is seen in the commit that made it.

From the folder ``benchmarks``: ``asv run`` (every new commit), ``asv continuous main HEAD`` (two of them),
``asv dev`` or ``asv run --python=same --quick`` (what is installed, once).
"""
