"""What the name of a column or array says of its values."""

from __future__ import annotations

import re

LABEL_NAMES = ("y", "gnd", "label", "labels", "target", "class", "classes")
"""Names under which the true classes usually travel (compared in lower case)."""

IDS = frozenset({"id", "ids", "idx", "uuid", "guid"})
"""Last word of a name that only identifiers have: whole numbers and texts below it are left out."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|#")  # PatientID and patient_id have the same words


def is_id(name: str) -> bool:
    """Return whether only identifiers have such a name."""
    return last_word(name) in IDS


def last_word(name: str) -> str:
    """Return the last word of a name in lower case.

    Examples
    --------
    >>> last_word("Patient-ID"), last_word("sampleId"), last_word("acid"), last_word("Ring No."), last_word("")
    ('id', 'id', 'acid', 'no', '')
    """
    return next(iter(_WORDS.findall(name)[::-1]), "").lower()
