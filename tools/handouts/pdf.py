"""What can be read off a PDF that Chromium wrote, without a package for it: pages, fonts, letters."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

_OBJECT = re.compile(rb"^(\d+) 0 obj\b(.*?)^endobj", re.MULTILINE | re.DOTALL)
_STREAM = re.compile(rb"/Length (\d+)\b.*?stream\r?\n", re.DOTALL)
_TO_UNICODE = re.compile(rb"/ToUnicode (\d+) 0 R")
_CODES = re.compile(rb"<([0-9A-Fa-f]+)>")


def pages(pdf: bytes) -> int:
    """How many pages there are."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def page_sizes(pdf: bytes) -> set[tuple[int, int]]:
    """The pages' sizes in whole millimetres."""
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", pdf)
    return {(round(float(wide) / 72 * 25.4), round(float(tall) / 72 * 25.4)) for wide, tall in boxes}


def fonts(pdf: bytes) -> dict[str, bool]:
    """Font -> whether its glyphs are inside the file: in a font file, or (Type 3, as for Noto's outlines) drawn one by one."""
    objects = _objects(pdf)
    found: dict[str, bool] = {}
    for body in objects.values():
        described = re.search(rb"/FontDescriptor (\d+) 0 R", body)
        if not re.search(rb"/Type\s*/Font\b", body) or re.search(rb"/Subtype\s*/Type0\b", body):
            continue  # a Type 0 font is a frame around another, which has its own object
        descriptor = objects[int(described[1])] if described else b""
        name = re.search(rb"/FontName\s*/(\S+)", descriptor) or re.search(rb"/BaseFont\s*/(\S+)", body)
        inside = b"/CharProcs" in body or re.search(rb"/FontFile[23]?\b", descriptor) is not None
        named = name[1].decode() if name else "?"
        found[named] = found.get(named, True) and inside
    return found


def letters(pdf: bytes) -> set[str]:
    """Every letter for which a font in the file has a glyph."""
    objects = _objects(pdf)
    found: set[str] = set()
    for number in {int(number) for number in _TO_UNICODE.findall(pdf)}:
        body = objects[number]
        stream = _STREAM.search(body)
        if stream:
            data = body[stream.end() : stream.end() + int(stream[1])]
            found.update(_mapped(zlib.decompress(data) if b"/FlateDecode" in body else data))
    return found


def _objects(pdf: bytes) -> dict[int, bytes]:
    return {int(number): body for number, body in _OBJECT.findall(pdf)}


def _mapped(cmap: bytes) -> Iterator[str]:
    """The letters of a ToUnicode map: ``<glyph> <letters>`` one by one, or ``<first> <last> <letters of first>``."""
    for kind, body in re.findall(rb"begin(bfchar|bfrange)(.*?)endbf", cmap, re.DOTALL):
        for line in body.strip().splitlines():
            codes = _CODES.findall(line)
            if kind == b"bfchar" and len(codes) == 2:
                yield from _text(codes[1])
            elif kind == b"bfrange" and len(codes) == 3:
                first, last = int(codes[0], 16), int(codes[1], 16)
                start = _text(codes[2])
                yield from start[:-1]
                yield from (chr(ord(start[-1]) + step) for step in range(last - first + 1))


def _text(code: bytes) -> str:
    return bytes.fromhex(code.decode()).decode("utf-16-be")
