"""Every method can be cited: its entry parses, says what the class says, and is printed."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import subspaces
from cli_data import run
from subspaces import KTRR, cite, registry
from subspaces.inspection import citations

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {
    "article": {"author", "title", "journal", "year", "volume"},
    "inproceedings": {"author", "title", "booktitle", "year"},
}
FIELD = re.compile(r"  (\w+) = \{(.*)\},?")


def parsed(text: str) -> tuple[str, str, dict[str, str]]:
    """Type, key and fields of an entry; strict: one field a line, braces that match, commas between fields alone."""
    first, *lines, last = text.splitlines()
    kind, key = re.fullmatch(r"@(\w+)\{([a-z]+\d{4}[a-z]+),", first).groups()
    assert last == "}"
    assert all(line.endswith("},") for line in lines[:-1])
    assert lines[-1].endswith("}")
    fields = dict(FIELD.fullmatch(line).groups() for line in lines)
    for value in fields.values():
        depth = 0
        for character in value:
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0
        assert depth == 0
    return kind, key, fields


def plain(text: str) -> str:
    """Words of a reference, without accents and hyphens of LaTeX."""
    return re.sub(r'[{}\\"]', "", text).replace("ö", "o").lower()


def test_entries_parse_and_are_complete():
    text = files("subspaces.inspection").joinpath(citations.FILE).read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{([^,]+),", text, flags=re.M)
    assert len(keys) == len(set(keys)) == len(citations.entries())
    for key, (entry, _) in citations.entries().items():
        kind, own_key, fields = parsed(entry)
        assert own_key == key
        assert set(fields) >= NEEDED[kind]
        assert set(fields) <= NEEDED[kind] | {"pages"}
        assert key.startswith(plain(fields["author"].partition(" and ")[0].split()[-1]))
        assert fields["year"] in key
        assert entry.isascii()


def test_every_method_has_one():
    of = [name for _, names in citations.entries().values() for name in names]
    assert set(of) == set(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_what_the_page_says(name):
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    said = plain(" ".join(page.partition("## Reference")[2].partition("## Example")[0].split()))
    for entry in cite(name).split("\n\n"):
        _, _, fields = parsed(entry)
        assert plain(fields["title"]) in said
        assert plain(fields["author"].replace(" and ", ", ")) in said
        assert fields["year"] in said
        for part in ("volume", "pages"):
            assert fields.get(part, "").replace("--", "-") in said


@pytest.mark.parametrize("name", registry.names(*registry.SHALLOW))
def test_what_the_class_says(name):
    first_author = registry.load(name).reference.partition(",")[0]
    assert plain(first_author) in plain(cite(name).partition("title")[0])


def test_names_classes_and_estimators():
    assert cite("ktrr") == cite(KTRR) == cite(KTRR(3)) == cite("KTRR")
    assert cite("ktrr", "ektrr") == cite("ktrr"), "one paper, once"
    assert cite("ssc", "lsr1").count("@") == 2
    assert "@misc{subspaces," in cite()
    with pytest.raises(ValueError, match="there is no method 'ktr'; did you mean ktrr"):
        cite("ktr")
    with pytest.raises(ValueError, match="there is no method 'dict'"):
        cite({})


def test_command():
    assert run("cite", "ktrr", "ssc").output.strip() == cite("ktrr", "ssc")
    assert run("cite").output.strip() == cite()
    wrong = run("cite", "ktr")
    assert wrong.exit_code == 2
    assert "did you mean ktrr" in wrong.output


def test_citation_file_is_of_this_version():
    yaml = pytest.importorskip("yaml")
    file = ROOT / "CITATION.cff"
    if not file.exists():
        pytest.skip("CITATION.cff is not part of this installation")
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert found["version"] == subspaces.__version__
    assert found["title"] in cite()
    assert {"cff-version", "message", "authors", "license", "type"} <= set(found)
    paper = found["preferred-citation"]
    own = cite("ktrr")
    assert paper["title"] in own
    assert all(author["family-names"] in own for author in paper["authors"])
    assert f"{paper['start']}--{paper['end']}" in own
    (preprint,) = paper["identifiers"]
    assert preprint["type"] == "doi"
    assert re.fullmatch(r"10\.\d{4,9}/\S+", preprint["value"])
