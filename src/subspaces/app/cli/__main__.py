"""``python -m subspaces.app.cli`` is the same as ``subspaces``."""

from __future__ import annotations

import sys
from importlib.util import find_spec

NEEDED = ("typer", "rich", "matplotlib", "jinja2")
"""Libraries of the extra ``app`` that commands take for granted."""


def main() -> None:
    """Run the command line; Ctrl-C while Python still loads it ends it as silently as later."""
    try:
        if missing := [name for name in NEEDED if find_spec(name) is None]:
            sys.exit(f'error: {" and ".join(missing)} not installed; install with pip install "subspaces[app]"')
        from subspaces.app.cli.main import app

        app(prog_name="subspaces")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
