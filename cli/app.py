"""The command `incarnate` and its subcommands."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from incarnate.cli.checkpoints import checkpoints
from incarnate.cli.conform import conform
from incarnate.cli.copy import copy
from incarnate.cli.doctor import doctor
from incarnate.cli.errors import Group
from incarnate.cli.export import export
from incarnate.cli.fork import fork
from incarnate.cli.harnesses import harnesses
from incarnate.cli.import_ import import_
from incarnate.cli.ingest import ingest
from incarnate.cli.ls import ls
from incarnate.cli.ps import ps
from incarnate.cli.repair import repair
from incarnate.cli.replay import replay
from incarnate.cli.resume import resume
from incarnate.cli.retire import retire
from incarnate.cli.rewinds import rewinds
from incarnate.cli.run import run as run_harness
from incarnate.cli.show import show
from incarnate.cli.simulate import simulate
from incarnate.cli.stats import stats
from incarnate.cli.stop import stop
from incarnate.cli.studio import studio
from incarnate.cli.superseded import superseded
from incarnate.cli.sweep import sweep

__all__ = ["cli", "run"]

_EPILOG = """\b
Exit codes:
  0  done
  1  refused or failed
  2  the command line is wrong
  3  ingest took all but some lines, copy all but some activations, which it lists; import all but a torn end
  4  doctor found damage
  5  doctor found no damage, and something odd
  6  run: somebody else has taken over
  7  run gave up after its restarts
  8  run: the harness ended its turn without finishing it
  9  run: the log could not be written to its end
127  run: the harness could not be started
130  interrupted, 143 terminated
"""


@click.group(cls=Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("incarnate"), prog_name="incarnate", message="%(prog)s %(version)s")
def cli() -> None:
    """Keep the sessions of agents that die: durable, fenced, replayable logs.

    KEY names one activation: PROCESS_INSTANCE_KEY/ELEMENT_ID, with / as %2F and % as %25 inside a part.
    """


for _command in (
    checkpoints,
    conform,
    copy,
    doctor,
    export,
    fork,
    harnesses,
    import_,
    ingest,
    ls,
    ps,
    repair,
    replay,
    resume,
    retire,
    rewinds,
    run_harness,
    show,
    simulate,
    stats,
    stop,
    studio,
    superseded,
    sweep,
):
    cli.add_command(_command)


def run() -> None:
    """Run the command line on the arguments of this process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter gets its escape, not a traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    cli(prog_name="incarnate")
