"""All sentences of the contract in one class."""

from __future__ import annotations

from incarnate.storage.contract.appends import Appends
from incarnate.storage.contract.archives import Archives
from incarnate.storage.contract.batches import Batches
from incarnate.storage.contract.checkpoints import Checkpoints
from incarnate.storage.contract.closing import Closing
from incarnate.storage.contract.fences import Fences
from incarnate.storage.contract.forks import Forks
from incarnate.storage.contract.openings import Openings
from incarnate.storage.contract.payloads import Payloads
from incarnate.storage.contract.processes import Processes
from incarnate.storage.contract.reading import Reading
from incarnate.storage.contract.repeats import Repeats
from incarnate.storage.contract.retirement import Retirement
from incarnate.storage.contract.rewinds import Rewinds
from incarnate.storage.contract.threads import Threads
from incarnate.storage.contract.traces import Traces
from incarnate.storage.contract.turns import Turns

__all__ = ["StoreContract"]


class StoreContract(
    Appends,
    Fences,
    Rewinds,
    Checkpoints,
    Repeats,
    Turns,
    Payloads,
    Batches,
    Reading,
    Archives,
    Forks,
    Retirement,
    Openings,
    Processes,
    Threads,
    Closing,
    Traces,
):
    """What every store promises; a subclass whose name begins with `Test` is what pytest collects.

    It overrides `store_url(folder)`, or, where no URL leads to its store, `open_store(folder)`: called again for the
    same folder, either leads to the same store. `lacks` names the capabilities that the store does not have, `vectors`
    the folder of the recorded traces. Any sentence may be overridden as any method, and tests of its own stand beside.
    """
