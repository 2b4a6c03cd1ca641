"""What pages show of a terminal is what the command prints: blocks behind ``<!-- runs -->`` are run."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from cli_data import run

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile(r"^<!-- runs -->\n```console\n(.*?)^```$", flags=re.M | re.S)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if MARKED.search(page.read_text(encoding="utf-8"))
]


def sessions(page: Path) -> list[tuple[str, str]]:
    """Commands of a page with what they are said to print."""
    text = "".join(MARKED.findall(page.read_text(encoding="utf-8")))
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def timeless(text: str) -> str:
    """The same whatever the machine took for it."""
    return re.sub(r"\d+\.\d s\b", "0.0 s", text)


def said_to_print(shown: str, printed: str) -> bool:
    """Whether this is what a page shows, ``...`` standing for anything."""
    return doctest.OutputChecker().check_output(timeless(shown), timeless(printed), doctest.ELLIPSIS)


@pytest.fixture
def wine(tmp_path, monkeypatch):
    """The files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    data = load_wine(as_frame=True)
    frame = data.data
    frame.insert(0, "sample", [f"S{i:04d}" for i in range(len(frame))])
    frame["kind"] = data.target_names[data.target]
    shutil.copytree(ROOT / "examples", "examples")
    frame.to_csv("wine.csv", index=False)
    frame.to_excel("wine.xlsx", index=False)
    frame.drop(columns="kind").iloc[::9].to_excel("new.xlsx", index=False)
    days = [f"2024-03-{1 + i // 2:02d}" for i in range(40)]
    cells = {"sample": [f"c{i}" for i in range(40)], "date": days, "area": np.sqrt(np.arange(40))}
    cells |= {"plate": ["A", "B", "C", "D"] * 10, "tissue": ["skin", "lung"] * 20}
    pd.DataFrame(cells).to_csv("cells.csv", index=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_what_is_printed(page, wine):
    pytest.importorskip("openpyxl")
    pytest.importorskip("skops")
    pytest.importorskip("jinja2")
    for command, shown in sessions(page):
        result = run(*shlex.split(command)[1:])
        assert said_to_print(shown, result.output), f"$ {command}\n{result.output}"
