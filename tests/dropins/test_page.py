"""The programs of docs/dropins.md run as they stand; those with >>> are run with those of all pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dropins.md"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("title", "package"), [("scanpy", "anndata"), ("BERTopic", "bertopic")])
def test_program_runs(title: str, package: str, tmp_path: Any, monkeypatch: Any) -> None:
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    programs = re.findall(r"^```python\n(.*?)^```", section, flags=re.M | re.S)
    assert programs
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), {})
