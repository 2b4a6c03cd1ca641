"""The paper's tables and figures from one command, our numbers beside the published ones.

An experiment is a file (``experiments/*.toml``), its settings come from ``parameters.toml``, what the paper says from
``paper/*.csv``. The way of an experiment to its results:

``schedule`` (experiment → cells) → ``runner`` (cells → results, kept as ``entries`` of a cache) → ``statistics``
(results beside the paper's numbers) → ``tables`` and ``figures`` → ``page``; ``experiment`` goes the whole way.

The experiments ask for the paper's whole protocol in pieces; what is missing is marked. Settings come from grids
(``choice``, ``chosen.toml``). Every sentence of the page that has a number is computed: ``findings`` about one
experiment, ``claims`` (by ``checks``) about what the paper's text says, ``report`` about all of it.
"""

from __future__ import annotations
