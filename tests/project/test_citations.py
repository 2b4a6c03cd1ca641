"""Every method can be cited: its entry parses, is complete and is printed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import subspaces
from cli_data import run
from subspaces import KTRR, SSC, TRR, SampledClusterer, SubspaceClustering, cite, registry
from subspaces.inspection import citations

NEEDED = {
    "article": {"author", "title", "journal", "year", "volume"},
    "inproceedings": {"author", "title", "booktitle", "year"},
}
CITATION = Path(__file__).resolve().parents[2] / "CITATION.cff"


def test_entries_are_complete_bibtex():
    assert {name for _, names in citations.entries().values() for name in names} == set(registry.names())
    for key, (entry, _) in citations.entries().items():
        first, *lines, last = entry.splitlines()
        kind, own_key = re.fullmatch(r"@(\w+)\{([a-z]+\d{4}[a-z]+),", first).groups()
        fields = dict(re.fullmatch(r"  (\w+) = \{(.*)\},?", line).groups() for line in lines)
        assert (own_key, last) == (key, "}")
        assert all(line.endswith("},") for line in lines[:-1])
        assert NEEDED[kind] <= set(fields) <= NEEDED[kind] | {"pages", "doi", "eprint", "archiveprefix"}
        assert re.fullmatch(r"10\.\d{4,}/\S+", fields.get("doi", "10.1000/1"))
        assert all(value.count("{") == value.count("}") for value in fields.values())
        assert fields["year"] in key
        assert entry.isascii()


def test_names_classes_and_estimators():
    assert cite("ktrr") == cite(KTRR) == cite(KTRR(3)) == cite("KTRR")
    assert cite("ktrr", "ektrr") == cite("ktrr"), "one paper, once"
    assert cite("ssc", "lsr1").count("@") == 2
    assert "@misc{subspaces," in cite()
    assert run("cite", "ktrr", "ssc").output.strip() == cite("ktrr", "ssc")
    assert cite(make_pipeline(GridSearchCV(TRR(3), {}))) == cite("trr")
    assert cite(SampledClusterer(clusterer=SSC(3))) == cite("ssc")
    assert cite(SubspaceClustering()) == cite("ktrr", "sc")
    model = SubspaceClustering(3, kernel="rbf", effort="fast").fit(np.eye(12)[:, :4] + np.eye(12)[:, 4:8])
    assert cite(model) == cite(model.estimator_)
    with pytest.raises(ValueError, match=r"'ktr'.*did you mean ktrr"):
        cite("ktr")
    with pytest.raises(ValueError, match="'dict'"):
        cite({})


def test_citation_file_is_of_this_version():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    assert found["version"] == subspaces.__version__
    assert found["title"] in cite()
    assert found["preferred-citation"]["title"] in cite("ktrr")
