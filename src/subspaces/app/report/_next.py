"""Section "What next": commands made from this run, ready to be copied; and the same in Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from subspaces.app.report._content import Content
from subspaces.app.report._sections import tree_of
from subspaces.selection.result import TOO_FEW

MOST_NUMBERS = 3
"""Other numbers of clusters that are proposed."""

Option = tuple[str, str | None]
"""An option with its value, None for a switch; a file is the value of the option "" (nothing)."""

SWITCHES = {"--image", "--motion"}
OUTPUTS = {"-o", "--output", "--report", "--sort-into", "--save"}
OUTPUT_SWITCHES = {"--force", "--json", "-q", "--quiet", "--debug"}
NUMBER = {"-k", "--clusters"}
READING = {"", "--label", "--truth", "--id", "--ignore", "--array", "--sheet"}
READING |= {"--keep", "--missing", "--text", "--features"}
"""Files and options that say how they are read, which ``subspaces explore`` has too; and these of ``--set``."""
READING_SETTINGS = ("header=", "decimal=", "image_size=", "color=")


@dataclass(frozen=True)
class Step:
    """A proposal: what for, and the commands that do it."""

    title: str
    text: str
    commands: tuple[str, ...]


def next_steps(content: Content) -> list[Step]:
    """Return proposals; none where the run did not come from a command, or its input came from a pipe."""
    typed = parsed(content.command)
    files = [value for option, value in typed if option == ""]
    if not files or "-" in files or len(content.summary.labels) < TOO_FEW:
        return []
    given = {option for option, _ in typed}
    base = [entry for entry in typed if entry[0] not in OUTPUTS | OUTPUT_SWITCHES]
    stem = Path(str(files[0])).stem or "result"
    steps = _numbers(content, base, stem)
    if content.files is not None and "--sort-into" not in given:
        last = int(content.summary.clusters.max(initial=0))
        folder = f"cluster_{last:0{max(2, len(str(last)))}d}"
        text = (
            "Copies every image into a folder for its cluster; your own files stay as they are. "
            f"Clusters keep their numbers: cluster {last} is in {folder}."
        )
        steps.append(Step("Sort the files into folders", text, (command(base, ["--sort-into", f"{stem}-sorted"]),)))
    if not given & {"-o", "--output"} and "--image" not in given:
        text = f"A row for each {content.noun[:-1]}, with its columns, cluster and how sure that is; .csv is as good."
        steps.append(Step("Keep the result as a table", text, (command(base, ["-o", f"{stem}-clusters.xlsx"]),)))
    if not given & {"--image", "--motion", "--scheduler"}:
        model = f"{stem}.skops"
        label = shlex.join(["subspaces", "predict", model, "NEW", "-o", "new.csv"])
        later = f"then the same clusters for {content.noun} that come later (NEW is their file or folder)"
        text = f"Saves what was learned; {later}."
        steps.append(Step(f"Label new {content.noun}", text, (command(base, ["--save", model]), label)))
        words = [
            (option, value)
            for option, value in base
            if option in READING | NUMBER or (option == "--set" and str(value).startswith(READING_SETTINGS))
        ]
        text = "Opens a page on this machine with the groups, a slider for their number, and questions."
        steps.append(Step("Try it with your own hands", text, (command(words, [], name="explore"),)))
    return steps


def _numbers(content: Content, base: list[Option], stem: str) -> list[Step]:
    """Propose other numbers of clusters that may be right."""
    numbers = other_numbers(content)
    if not numbers:
        return []
    rest = [entry for entry in base if entry[0] not in NUMBER]
    commands = tuple(command(rest, ["-k", str(k), "--report", f"{stem}-{k}.html"]) for k in numbers)
    shown = len(content.summary.clusters)
    if shown == 1:
        text = "None stands out; a number that you know can still be given."
        return [Step("Ask for groups all the same", text, commands)]
    low, high = content.document.get("n_clusters_range", (0, 0))
    why = f"Between {low} and {high} may be right" if low < high else "These numbers stand out as well"
    return [Step("Try another number of clusters", f"{why}; this page shows {shown}. Compare the pages.", commands)]


def other_numbers(content: Content) -> list[int]:
    """Return other numbers of clusters that may be right: the rival of the estimate, levels of the tree."""
    shown, found = len(content.summary.clusters), []
    count = getattr(getattr(content.estimator, "selection_", None), "n_clusters", None)
    if shown == 1:
        return [2]
    if count is not None:
        found += [count.low, count.high]
    tree = tree_of(content)
    if tree is not None:
        found += [k for k in tree.layers if not found or found[0] <= k <= found[1]]
    others = dict.fromkeys(k for k in found if k not in (1, shown))
    return sorted(list(others)[:MOST_NUMBERS])


def parsed(text: str) -> list[Option]:
    """Return the options and files of a command after its name; empty where there is none.

    Examples
    --------
    >>> parsed("subspaces cluster 'my photos' -k 3 --image --report=a.html")
    [('', 'my photos'), ('-k', '3'), ('--image', None), ('--report', 'a.html')]
    """
    words = iter(shlex.split(text)[2:])
    found: list[Option] = []
    for word in words:
        if not word.startswith("-") or word == "-":
            found.append(("", word))
        elif word in SWITCHES | OUTPUT_SWITCHES:
            found.append((word, None))
        elif word.startswith("--"):
            name, sign, value = word.partition("=")
            found.append((name, value if sign else next(words, "")))
        else:  # -k 3, or -k3
            found.append((word[:2], word[2:] or next(words, "")))
    return found


def command(options: Iterable[Option], added: Sequence[str], name: str = "cluster") -> str:
    """Return a command for a shell.

    Examples
    --------
    >>> command([("", "my photos"), ("--image", None)], ["-k", "3"])
    "subspaces cluster 'my photos' --image -k 3"
    """
    words = [word for option, value in options for word in (option, value) if word]
    return shlex.join(["subspaces", name, *words, *added])
