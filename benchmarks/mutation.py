"""Mutation testing of one module with mutmut: the small errors in the code that no test would notice.

    python benchmarks/mutation.py graphs/rules               # all mutants; prints the survivors as diffs
    python benchmarks/mutation.py metrics --only "*x_nmi*"   # some of them again, after new tests

Runs in a copy of the checkout (``--folder``, one per module), because mutmut writes there. mutmut chooses the tests
that reach the mutated function, among those of the module; texts of errors and warnings are not mutated. Needs
``pip install mutmut`` (3.8).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

TESTS = {
    "kernels/__init__": ["kernels/test_*.py"],
    "graphs/rules": ["graphs/test_rules*.py", "graphs/test_truncation*.py", "graphs/test_affinity*.py"],
    "spectral/assign": ["spectral/test_kmeans*.py", "spectral/test_partition*.py"],
    "metrics": ["metrics/test_*.py"],
}
"""Test files (globs below tests/) of modules whose tests are not only ``tests/<folder>/test_<module>*.py``."""

SLOW = {
    "spectral/embedding": "0.05-float32 or 0.001-float32 or float32-1e-05 or float32-0.0001 or float32-1e-06 "
    "or float64-1e-05 or float64-0.0001 or float64-0.001 or 20-200 or same_bits_on_every_run or points_at_the_caller",
}
"""Tests (as for ``pytest -k``) left out: repetitions with other numbers (every survivor would run them all), and what
mutmut's own calls between the functions disturb (where a warning points)."""

SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/subspaces/{module}.py"]
also_copy = ["conftest.py", "src"]
do_not_mutate_patterns = ['raise \\w+', 'warnings\\.warn\\(']
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:unraisableexception", "--tb=no", \
"-p", "_hypothesis_pytestplugin", "--hypothesis-profile=mutation"]
on_dependency_change = "ignore"
timeout_multiplier = 3.0
timeout_constant = 30.0
"""

# newer pytest has not the private Node._nodeid that mutmut 3.8 reads; a failure need not be made small (no shrinking);
# garbage collection would copy the memory of the parent into each of the forked processes
MUTMUT = """
import gc
gc.disable()
from _pytest.nodes import Node
from hypothesis import Phase, settings
settings.register_profile(
    "mutation", deadline=None, derandomize=True, database=None, max_examples=25, phases=[Phase.explicit, Phase.generate]
)
if not hasattr(Node, "_nodeid"):
    Node._nodeid = property(lambda node: node.nodeid)
from mutmut.__main__ import cli
cli()
"""

REPORT = """
from collections import Counter
from mutmut.__main__ import get_diff_for_mutant, status_by_exit_code, walk_mutatable_files
from mutmut.mutation.data import SourceFileMutationData
for path in walk_mutatable_files():
    data = SourceFileMutationData(path=path)
    data.load()
    states = {name: status_by_exit_code[code] for name, code in data.exit_code_by_key.items()}
    for name, state in states.items():
        if state not in ("killed", "not checked"):
            diff = get_diff_for_mutant(name, path=path).splitlines()[2:]
            print(f"# {name}: {state}", *(line for line in diff if line[:1] in "+-"), sep="\\n")
    if states:
        print(path, len(states), dict(Counter(states.values())))
"""


def prepare(module: str, folder: Path) -> None:
    """Bring the copy of the checkout up to date; mutmut's own folder stays, so that it remembers what it ran."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("src", "tests"):
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "conftest.py", folder)
    place, _, name = module.rpartition("/")
    globs = TESTS.get(module, [f"{place}/test_{name.lstrip('_')}*.py".lstrip("/")])
    found = sorted(str(path.relative_to(ROOT)) for glob in globs for path in (ROOT / "tests").glob(glob))
    if not found:
        sys.exit(f"no tests match {globs} below tests/; name them in TESTS of {Path(__file__).name}")
    if module in SLOW:
        found += ["-k", f"not ({SLOW[module]})"]
    settings = SETTINGS.format(module=module, tests=found)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + settings)


def run(script: str, folder: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"), "1"),
        "PYTHONPATH": "",
    }
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"mutmut {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-5000:]}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", help="module of subspaces, without .py, as in representation/ridge")
    parser.add_argument("--only", nargs="*", default=[], help="mutants (wildcards) to run again")
    parser.add_argument("--report", action="store_true", help="run nothing, print what is known")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "subspaces-mutation",
        help="where the copies are made",
    )
    arguments = parser.parse_args()
    folder = arguments.folder / arguments.module.replace("/", ".")
    if not arguments.report:
        prepare(arguments.module, folder)
        run(MUTMUT, folder, "run", "--max-children", "1", *arguments.only)
    print(run(REPORT, folder))


if __name__ == "__main__":
    main()
