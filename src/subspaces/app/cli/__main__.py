"""``python -m subspaces.app.cli`` is the same as ``subspaces``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C while Python still loads it ends it as silently as later."""
    try:
        from subspaces.app.cli.main import app

        app(prog_name="subspaces")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
