"""Tables of measured numbers: a benchmark writes them to ``docs/measured``, pages of the manual copy them from there.

    python benchmarks/measured.py            # copy the tables into the pages; list what the code has overtaken

A page has the table between ``<!-- measured: NAME -->`` and ``<!-- end -->``. The file keeps the command, the commit
and a hash of the source folders that the numbers depend on, so that ``tests/project/test_docs.py`` can tell when they
are of older code.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "measured"
SOURCE = ROOT / "src" / "subspaces"
LIBRARY = ("utils", "kernels", "representation", "graphs", "spectral", "landmarks", "engine", "estimators")
SEARCH = (*LIBRARY, "selection")
MARK = re.compile(r"^<!-- measured: (\w+) -->\n(.*?)^<!-- end -->$", flags=re.M | re.S)


def save(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, folders: Sequence[str] = LIBRARY) -> Path:
    """Write a table that depends on these folders of the package."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    table = {
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "sources": {folder: code_hash(SOURCE / folder) for folder in folders},
        "columns": list(columns),
        "rows": [[str(cell) for cell in row] for row in rows],
    }
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


@contextmanager
def kept(name: str, *, folders: Sequence[str] = LIBRARY) -> Iterator[None]:
    """Print what is printed inside, and save the first Markdown table of it."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        print(printed.getvalue(), flush=True)
    lines = re.search(r"^\|.*(?:\n\|.*)*", printed.getvalue(), flags=re.M)
    if lines is None:
        raise ValueError(f"no table was printed for {name}")
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines[0].splitlines())
    save(name, head, rows, folders=folders)


def code_hash(folder: Path) -> str:
    """Return a hash of the code below `folder`, blind to comments, layout and docstrings."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = [part for part in node.body if not _is_text(part)]
        found.update(f"{path.relative_to(folder)} {ast.dump(tree)}".encode())
    return found.hexdigest()[:16]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def overtaken(table: dict[str, Any]) -> list[str]:
    """Return the folders whose code is no longer that of the table."""
    return [folder for folder, known in table["sources"].items() if code_hash(SOURCE / folder) != known]


def read(name: str) -> dict[str, Any]:
    """Read a table that a benchmark wrote."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def markdown(table: dict[str, Any]) -> str:
    """Return a table as pages show it, with where it comes from."""
    lines = [table["columns"], ["---", *["---:"] * (len(table["columns"]) - 1)], *table["rows"]]
    said = f"(`{table['command']}`, commit {table['commit']}, {table['date']})"
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + f"\n\n{said}\n"


def filled(page: str) -> str:
    """Return a page with the tables of its marks."""
    return MARK.sub(
        lambda found: f"<!-- measured: {found[1]} -->\n{markdown(read(found[1]))}<!-- end -->",
        page,
    )


def main() -> int:
    """Copy the tables into the pages; return 1 if the code has changed since one of them was measured."""
    old = []
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        names = [found[1] for found in MARK.finditer(text)]
        if names:
            path.write_text(filled(text), encoding="utf-8")
        old += [f"{path.name}: {name}, changed: {', '.join(f)}" for name in names if (f := overtaken(read(name)))]
    print("\n".join(old) or "all tables are of this code")
    return 1 if old else 0


if __name__ == "__main__":
    raise SystemExit(main())
