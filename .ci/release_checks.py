"""The checks of ``.ci/release`` that are easier to read in Python; one command each, exit code 1 with the reason."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import Version

INDEX = "https://pypi.org/pypi/"
DATABASES = {
    "pypi": "https://pypi.org/pypi/pillow/10.0.0/json",
    "osv": "https://api.osv.dev/v1/vulns/GHSA-3f63-hfp8-52jq",
}
"""Where pip-audit asks, each with a question whose answer is not empty."""

LICENCES = {
    "0BSD",
    "Apache-2.0",
    "BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "HPND",
    "ISC",
    "LGPL-2.1-or-later",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "MPL-2.0",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "Zlib",
}
"""What may come along: licences that ask for no more than notices (MPL and LGPL: for changes of their own files)."""

SPELLINGS = {
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
"""Names that older metadata uses (in lower case)."""


class Problem(Exception):
    """What makes a release unpublishable."""


def same_files(first: str, second: str) -> None:
    """Two wheels hold the same files."""
    names = [set(zipfile.ZipFile(path).namelist()) for path in (first, second)]
    if names[0] != names[1]:
        raise Problem(f"only in one of the wheels: {sorted(names[0] ^ names[1])}")
    print(f"{len(names[0])} files in both")


# ---------------------------------------------------------------- floors


def requirements(pyproject: str) -> Iterator[Requirement]:
    """Everything that pyproject.toml asks for, without the package's own extras."""
    project = tomllib.loads(Path(pyproject).read_text(encoding="utf-8"))["project"]
    for line in (
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ):
        requirement = Requirement(line)
        if requirement.name != project["name"]:
            yield requirement


def floor_of(requirement: Requirement) -> Version | None:
    """The lowest version that a requirement allows."""
    return next((Version(s.version) for s in requirement.specifier if s.operator in (">=", "==")), None)


def pinned(path: str) -> dict[str, Version]:
    """Packages and versions of a file that `uv pip compile` wrote."""
    lines = re.findall(
        r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", Path(path).read_text(encoding="utf-8"), re.MULTILINE
    )
    return {canonicalize_name(name): Version(version) for name, version in lines}


def floors(pyproject: str, resolved: str) -> None:
    """The versions tested are the floors that are declared: a lower one would be a promise that nobody checked."""
    found, problems = pinned(resolved), []
    for requirement in requirements(pyproject):
        floor, tested = floor_of(requirement), found.get(canonicalize_name(requirement.name))
        if floor is None:
            problems.append(f"{requirement} has no floor")
        elif tested is not None and tested != floor:
            problems.append(f"{requirement} is tested with {tested}: declare {requirement.name}>={tested}")
    if problems:
        raise Problem("\n".join(problems))


def floor(pyproject: str, name: str) -> None:
    """Print the floor of a package as a requirement."""
    print(next(f"{r.name}=={floor_of(r)}" for r in requirements(pyproject) if r.name == name))


# ---------------------------------------------------------------- what is installed


def installed(venv: str) -> list[Distribution]:
    """Distributions of a virtual environment, without the package itself."""
    (folder,) = Path(venv).glob("lib/python*/site-packages")
    return sorted((d for d in distributions(path=[str(folder)]) if d.name != "subspaces"), key=lambda d: d.name.lower())


def licence_of(distribution: Distribution) -> str:
    """The licence as its metadata states it: an expression, else classifiers, else the first words of the old field."""
    metadata = distribution.metadata
    if metadata["License-Expression"]:
        return metadata["License-Expression"]
    classifiers = [c.split(" :: ")[-1] for c in metadata.get_all("Classifier") or () if c.startswith("License :: ")]
    named = [c for c in classifiers if c != "OSI Approved"]
    return " AND ".join(named) or (metadata["License"] or "none stated").strip().splitlines()[0]


def allowed(licence: str) -> bool:
    """Whether everything that a licence demands at once is on the list (of alternatives one is enough)."""
    plain = licence.replace("(", " ").replace(")", " ") if re.search(r"\b(AND|OR|WITH)\b", licence) else licence
    return any(
        all(
            SPELLINGS.get(part.strip().lower(), part.strip().split(" WITH ")[0]) in LICENCES
            for part in alternative.split(" AND ")
        )
        for alternative in plain.split(" OR ")
    )


def changed_files(distribution: Distribution) -> list[str]:
    """Files whose bytes are not those of the RECORD that came with them."""
    wrong = []
    for file in distribution.files or ():
        if file.hash is None:
            continue
        found = hashlib.new(file.hash.mode, Path(str(file.locate())).read_bytes()).digest()
        if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != file.hash.value:
            wrong.append(str(file))
    return wrong


def sbom(path: str, venv: str) -> None:
    """The document names every package that is installed, with version, address and licence.

    Licences that the tool did not recognise are put in by the name that the package gives them.
    """
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    components = {canonicalize_name(c["name"]): c for c in document["components"]}
    for distribution in installed(venv):
        component = components.get(canonicalize_name(distribution.name))
        if component is None or component["version"] != distribution.version or not component.get("purl"):
            raise Problem(f"{distribution.name} {distribution.version} is not in {path}")
        component.setdefault("licenses", [{"license": {"name": licence_of(distribution)}}])
    Path(path).write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{Path(path).name}: CycloneDX {document['specVersion']}, {len(components)} packages, all with licences")


# ---------------------------------------------------------------- audit


def on_index(name: str) -> dict[str, Any]:
    """What PyPI says about a project: its releases, and the known vulnerabilities of the newest."""
    with urllib.request.urlopen(f"{INDEX}{name}/json", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def withdrawn(project: dict[str, Any], version: Version) -> list[str]:
    """Why files of a release were withdrawn (yanked), if they were."""
    # releases are named as their authors wrote them: 1.0 and 1.0.0 are one, and 1.3.0.dev-r634 is none
    files: list[dict[str, Any]] = next(
        (
            files
            for name, files in project["releases"].items()
            if canonicalize_version(name) == canonicalize_version(version)
        ),
        [],
    )
    return sorted({file["yanked_reason"] or "no reason given" for file in files if file["yanked"]})


def audit(lock: str, venv: str, lowest: str, advisories: str) -> None:
    """What can be known about the packages from themselves, from the index and from our own list."""
    versions, packages, problems = pinned(lock), installed(venv), []
    if {canonicalize_name(d.name): Version(d.version) for d in packages} != versions:
        problems.append("what is installed is not what the list with hashes names")
    for distribution in packages:
        problems += [f"{distribution.name}: {file} is not as published" for file in changed_files(distribution)]
        if not allowed(licence_of(distribution)):
            problems.append(f"{distribution.name}: licence {licence_of(distribution)!r} is not on the list")
    with ThreadPoolExecutor(8) as pool:
        projects = dict(zip(versions, pool.map(on_index, versions), strict=True))
    older = []
    for name, version in versions.items():
        project = projects[name]
        problems += [f"{name} {version} was withdrawn: {reason}" for reason in withdrawn(project, version)]
        if Version(project["info"]["version"]) != version:
            older.append(f"{name} {version}")
            continue
        ids = [found["id"] for found in project["vulnerabilities"] if not found.get("withdrawn")]
        if ids:
            problems.append(f"{name} {version} has known vulnerabilities: {', '.join(ids)}")
    known = tomllib.loads(Path(advisories).read_text(encoding="utf-8"))
    problems += affected(known, versions, pinned(lowest))
    if problems:
        raise Problem("\n".join(problems))
    print(f"{len(versions)} packages: wheels only, hashes and RECORDs agree, none withdrawn, licences allowed")
    listed = f"; it does not say for {', '.join(older)}, which are not the newest" if older else ""
    print(f"PyPI knows no vulnerability of the {len(versions) - len(older)} that are the newest release{listed}")
    print(f"{len(known['advisory'])} advisories of {known['checked']}: the newest versions have none that is fixed")


def affected(known: dict[str, Any], newest: dict[str, Version], lowest: dict[str, Version]) -> list[str]:
    """Advisories with a fix in the newest versions, or in a floor where they break a promise; the rest is printed."""
    problems = []
    for advisory in known["advisory"]:
        name, what = advisory["package"], f"{advisory['id']}: {advisory['why']}"
        fixed = Version(advisory["fixed"]) if advisory["fixed"] else None
        if fixed is None:
            print(f"no fix yet: {name} {newest.get(name)}, {what}")
        elif newest.get(name, fixed) < fixed:
            problems.append(f"newest {name} {newest[name]}, {what}")
        elif lowest.get(name, fixed) < fixed:
            if advisory.get("promise"):
                problems.append(f"floor {name} {lowest[name]}, {what}; raise it to {fixed}")
            else:
                print(f"floor {name} {lowest[name]} works, but only {fixed} is safe: {what}")
    return problems


def database() -> None:
    """Print a vulnerability database that answers; fail if none does (pip-audit would call its silence a success)."""
    for name, address in DATABASES.items():
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                json.load(answer)
        except (OSError, ValueError):
            continue
        print(name)
        return
    raise Problem("no vulnerability database answers")


COMMANDS: dict[str, Callable[..., None]] = {
    "same-files": same_files,
    "floors": floors,
    "floor": floor,
    "sbom": sbom,
    "audit": audit,
    "database": database,
}

if __name__ == "__main__":
    try:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
    except Problem as problem:
        sys.exit(f"{problem}")
