"""Read the pages that were built: links within must lead somewhere, nothing may be loaded from another machine."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SEARCHED = ("excel", "spreadsheet", "cite", "photo", "heic", "bibtex", "windows")
"""Words that newcomers typed into the search of the manual, and must find."""

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class Page(HTMLParser):
    """Names, links and loaded files of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one tag names, links to or loads."""
        values = {name: value for name, value in attrs if value}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if values.get(LOADED.get(tag, "")) and values.get("rel") != "canonical":
            self.loaded.add(values[LOADED[tag]])


def check(root: Path) -> tuple[list[str], set[str]]:
    """Faults of the pages under `root`, and the addresses of other sites that they link to."""
    pages = {path.resolve(): Page(path) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts}
    faults: list[str] = []
    elsewhere: set[str] = set()
    for path, page in pages.items():
        for target in sorted(page.links | page.loaded):
            parts = urlsplit(target)
            if parts.scheme in ("data", "javascript", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                elsewhere.add(target)
                if target in page.loaded:
                    faults.append(f"{path.relative_to(root.resolve())} loads {target}")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.exists():
                faults.append(f"{path.relative_to(root.resolve())} links to {target}, which does not exist")
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].names:
                faults.append(f"{path.relative_to(root.resolve())} links to {target}, a place that does not exist")
    return faults, elsewhere


def not_found(root: Path) -> list[str]:
    """Words of `SEARCHED` that the manual's own search does not know, by the stems it is made of."""
    from snowballstemmer import stemmer  # Sphinx brings it, and makes its index with it

    text = (root / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    stem = stemmer("english").stemWord
    return [word for word in SEARCHED if not {word, stem(word)} & (index["terms"].keys() | index["titleterms"].keys())]


def main() -> int:
    """Print what is wrong and where pages link to; 1 if anything is wrong."""
    root = Path(sys.argv[1])
    faults, elsewhere = check(root)
    faults += [f"a search for '{word}' finds nothing" for word in not_found(root)]
    n_pages = len([path for path in root.rglob("*.html") if "_static" not in path.parts])
    print(f"{n_pages} pages, {len(faults)} faults, {len(elsewhere)} links to other sites (not followed):")
    print("\n".join(f"  {address}" for address in sorted(elsewhere)))
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
