"""The command line of `incarnate run`: our options, and behind `--` a harness's line, of which nothing is ours."""

from __future__ import annotations

import click

from incarnate.cli.errors import UsageFailure

__all__ = ["RunLine"]

_HINT = "put -- before it: incarnate run --harness NAME --key KEY -- ARGV..."


class RunLine(click.Command):
    """A command whose arguments stand behind `--` alone: an option of a harness may have the name of one of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the line.

        Raises:
            UsageFailure: there are words of a harness's line, and no `--` before them.
        """
        ctx.allow_interspersed_args = False
        given = list(args)
        rest = super().parse_args(ctx, args)
        argv = ctx.params["argv"]
        if argv and given[-len(argv) - 1 : -len(argv)] != ["--"]:
            raise UsageFailure(f"the harness's command line, from {argv[0]!r} on, stands behind no --", _HINT)
        return rest
