"""Cite methods and the package: BibTeX entries from ``citations.bib``."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from subspaces import __version__, registry

FILE = "citations.bib"


def cite(*methods: Any) -> str:
    """Return BibTeX entries of the papers of methods; without any, of this package.

    Parameters
    ----------
    methods : names such as ``"ktrr"``, classes or estimators of this package, also inside pipelines and searches. Of
        :class:`~subspaces.SubspaceClustering` the method that won, or before a fit all it chooses from

    Examples
    --------
    >>> from subspaces import TRR, cite
    >>> print(cite("trr"))
    @inproceedings{peng2015robust,
      author = {X. Peng and Z. Yi and H. Tang},
      title = {Robust subspace clustering via thresholding ridge regression},
      booktitle = {AAAI Conference on Artificial Intelligence},
      year = {2015}
    }
    >>> cite(TRR(n_clusters=3)) == cite("trr")
    True
    """
    if not methods:
        return _PACKAGE
    names = [name for method in methods for name in _names_of(method)]
    found = {key: text for name in names for key, (text, of) in entries().items() if name in of}
    return "\n\n".join(found.values())


@lru_cache(maxsize=1)
def entries() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return every entry by its key: its text, and the methods it is cited for."""
    text = files("subspaces.inspection").joinpath(FILE).read_text(encoding="utf-8")
    found = {}
    for entry in re.findall(r"^@.*?^}", text, flags=re.M | re.S):
        key = re.match(r"@\w+\{([^,]+),", entry)
        methods = re.search(r"^  methods = \{(.*)\},\n", entry, flags=re.M)
        assert key is not None
        assert methods is not None
        found[key[1]] = (entry.replace(methods[0], ""), tuple(methods[1].split(", ")))
    return found


_PACKAGE = f"""\
@misc{{subspaces,
  author = {{{{The subspaces developers}}}},
  title = {{subspaces: clustering of data on unions of subspaces}},
  note = {{Python package, version {__version__}}}
}}"""


def _names_of(method: Any) -> tuple[str, ...]:
    """Return the methods in an estimator: of a search, a pipeline or a sample those inside, otherwise its own."""
    if not isinstance(method, type | str):
        steps = getattr(method, "steps", None)
        inside = steps[-1][1] if steps else None
        for name in ("best_estimator_", "estimator_", "estimator", "clusterer"):
            inside = getattr(method, name, None) if inside is None else inside
        if inside is not None:
            return _names_of(inside)
    name = method if isinstance(method, str) else (method if isinstance(method, type) else type(method)).__name__
    return ("ktrr", "sc") if name == "SubspaceClustering" else (name_of(name),)


def name_of(method: str) -> str:
    """Return the name in the registry of a name or the name of a class.

    Examples
    --------
    >>> name_of("NystromSC"), name_of("ktrr")
    ('nystrom', 'ktrr')
    """
    by_class = {entry.class_name: entry.name for entry in registry.METHODS}
    name = by_class.get(method, method.lower())
    if name not in registry.names():
        close = difflib.get_close_matches(name, registry.names(), n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(f"there is no method '{method}'{hint} (known: {', '.join(registry.names())})")
    return name
