"""The paper's tables and figures from one command, our numbers beside the published ones.

An experiment is a file (``experiments/*.toml``), its settings come from ``parameters.toml``, what the paper says from
``paper/*.csv``. The way of an experiment to its results:

``schedule`` (experiment → cells) → ``runner`` (cells → results, kept as ``entries`` of a cache) → ``statistics``
(results beside the paper's numbers) → ``tables`` and ``figures`` → ``page``; ``experiment`` goes the whole way.
"""

from __future__ import annotations
