"""What a workbook holds, before a library that trusts it reads it: parts without tricks, and what they will take.

A workbook is a zip archive of XML. openpyxl keeps a Python object for nearly every element, so a file of kilobytes can
ask for gigabytes; here its parts pass through a parser that keeps nothing and counts.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

from subspaces.app.files.safe_files import check_ratio
from subspaces.utils.files import FileError, check_size

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main "
STRICT = "http://purl.oclc.org/ooxml/spreadsheetml/main "
ELEMENT, CELL, SETTING = 150, 400, 2000
"""Bytes that openpyxl takes for an element of a sheet or of the texts, for one in the row that it is at, and for one of
anything else (styles): measured and rounded up."""

_CHUNK = 2**16


@dataclass
class Scan:
    """What the parts of a workbook hold together."""

    n_bytes: int = 0
    needed: int = 0
    unstored: str = ""
    n_unstored: int = 0


def scan(path: Path, max_bytes: int) -> Scan:
    """Refuse a workbook that is hostile or needs more than `max_bytes`; count its formulas without a stored result."""
    found = Scan()
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("packed in a way that workbooks are not")
            if member.flag_bits & 1:
                raise FileError(path, "the workbook is locked with a password; save it without one")
            found.n_bytes += member.file_size  # no more than this is ever unpacked
        check_size(path, found.n_bytes, max_bytes, "unpacks to")
        check_ratio(path, found.n_bytes, path.stat().st_size, "if that is right, save the sheet as .csv")
        found.needed = found.n_bytes
        for member in archive.infolist():
            with archive.open(member) as stream:
                _scan_part(path, stream, found, max_bytes)
    return found


def _scan_part(path: Path, stream: Any, found: Scan, max_bytes: int) -> None:
    head = stream.read(_CHUNK)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00<" in head[:4] or b"<\x00" in head[:4]:
        raise ValueError("its XML is not UTF-8")
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        return  # a picture or a macro, which nobody opens
    part = _Part()
    before = found.needed
    while head:
        part.parser.Parse(head, False)
        found.needed = before + part.needed
        check_size(path, found.needed, max_bytes, "the workbook needs")
        head = stream.read(_CHUNK)
    part.parser.Parse(b"", True)
    found.n_unstored += part.n_unstored
    found.unstored = found.unstored or part.unstored


class _Part:
    """Counts the elements of a part: those that stay in memory, and those of a row, which make room for the next."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.XmlDeclHandler = self._declared
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.root, self.depth, self.row_depth = "", 0, 0
        self.n_kept = self.n_row = self.n_longest = self.n_all = 0
        self.has_dimension = False
        self.cell, self.has_formula, self.has_value = "", False, False
        self.unstored, self.n_unstored = "", 0

    @property
    def needed(self) -> int:
        if self.root == "sst":
            return ELEMENT * self.n_all
        if self.root != "worksheet":
            return SETTING * self.n_all
        # without the dimension at its head, openpyxl goes through all of a sheet to look for it
        return ELEMENT * (self.n_kept if self.has_dimension else self.n_all) + CELL * self.n_longest

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.removeprefix(MAIN).removeprefix(STRICT)
        self.depth += 1
        self.n_all += 1
        if self.depth == 1:
            self.root = name
        if not self.row_depth:
            self.n_kept += 1
            if name == "row":
                self.row_depth, self.n_row = self.depth, 0
            self.has_dimension |= name == "dimension"
            return
        self.n_row += 1
        self.n_longest = max(self.n_longest, self.n_row)
        if name == "c":
            self.cell, self.has_formula, self.has_value = attributes.get("r", "?"), False, False
        self.has_formula |= name == "f"
        if name == "v" and self.has_formula:
            self.parser.CharacterDataHandler = self._value

    def _end(self, name: str) -> None:
        if self.row_depth == self.depth:
            self.row_depth = 0
        elif self.row_depth and name in (MAIN + "c", STRICT + "c") and self.has_formula:
            self.parser.CharacterDataHandler = None
            self.n_unstored += not self.has_value
            self.unstored = self.unstored or ("" if self.has_value else self.cell)
        self.depth -= 1

    def _value(self, text: str) -> None:
        self.has_value = True
        self.parser.CharacterDataHandler = None

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "us-ascii"):
            raise ValueError("its XML is not UTF-8")

    def _refuse(self, *_: Any) -> None:
        raise ValueError("its XML defines entities, which no spreadsheet program writes")
