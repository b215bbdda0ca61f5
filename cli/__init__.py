"""The command line: one file a command; each parses, calls the library once and prints."""

import os
import sys

from incarnate.domain.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command line on the arguments of this process."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # started with it closed: `incarnate ... >&-`
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - open for as long as the process
    try:
        from incarnate.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        missing = MissingExtraError("cli", "the command line")
        sys.stderr.write(f"Error: {missing}\nTry: {missing.hint}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:  # half of the time until a command begins is spent above
        sys.stderr.write("Error: interrupted\nTry: run it again\n")
        raise SystemExit(130) from None
    run()
