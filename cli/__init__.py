"""The command line: one file a command; each parses, calls the library once and prints."""

import sys

from incarnate.domain.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command line on the arguments of this process."""
    try:
        from incarnate.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        missing = MissingExtraError("cli", "the command line")
        sys.stderr.write(f"Error: {missing}\nTry: {missing.hint}\n")
        raise SystemExit(1) from None
    run()
