"""Bytes of the fuzzer packed soundly: cut into parts, and put into archives and images with right checksums."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence


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


def png_of(*chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of these chunks."""
    content = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        content += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return content
