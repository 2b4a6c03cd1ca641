"""Bytes of the fuzzer packed soundly: cut into parts, and put into archives and images with right checksums."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from functools import cache


def parts_of(data: bytes, most: int = 4) -> list[bytes]:
    """Cut bytes into up to `most` parts, each behind its length of two bytes."""
    parts: list[bytes] = []
    while data and len(parts) < most:
        length = int.from_bytes(data[:2], "little")
        parts.append(data[2 : 2 + length])
        data = data[2 + length :]
    return parts


def exactly(n: int, data: bytes) -> list[bytes]:
    """Cut bytes into `n` parts, the last ones empty where there is too little."""
    return [*parts_of(data, n), *[b""] * n][:n]


def joined(*parts: bytes) -> bytes:
    """What `parts_of` cuts, for seeds."""
    return b"".join(len(part).to_bytes(2, "little") + part for part in parts)


def zipped(names: Sequence[str], parts: Sequence[bytes], method: int) -> bytes:
    """An archive of the parts under these names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, part in zip(names, parts, strict=False):
            archive.writestr(name, part)
    return stream.getvalue()


@cache
def workbook() -> dict[str, bytes]:
    """The parts of a small workbook."""
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["a", "b", "c"], [1, 2.5, "x"], [3, "=A2", "y"], [5, True, "x"]):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    with zipfile.ZipFile(stream) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    # texts apart, as Excel writes them and openpyxl does not
    namespace = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts["xl/sharedStrings.xml"] = b'<sst xmlns="%s"><si><t>a</t></si><si><r><t>b</t></r></si></sst>' % namespace
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%s"/></Types>' % kind
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"</Types>", override)
    sheet = parts["xl/worksheets/sheet1.xml"]
    parts["xl/worksheets/sheet1.xml"] = sheet.replace(b't="inlineStr"><is><t>b</t></is>', b't="s"><v>1</v>')
    return parts


def png_of(*chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of these chunks."""
    content = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        content += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return content
