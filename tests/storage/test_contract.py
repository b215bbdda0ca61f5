"""The shipped contract over the table of back ends: one class a row."""

from pathlib import Path
from typing import Any

from incarnate.storage.contract import StoreContract
from tests.support.stores import BACKENDS, Backend

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"


def contract(name: str, backend: Backend) -> type[StoreContract]:
    lacks = () if backend.keeps else ("durable", "shared", "processes")
    body: dict[str, Any] = {
        "__module__": __name__,
        "lacks": lacks,
        "vectors": VECTORS,
        "store_url": lambda _, folder: backend.url(folder),
    }
    return type(name, (StoreContract,), body)


for row, one in BACKENDS.items():
    title = "Test" + row.title().replace("-", "")
    globals()[title] = contract(title, one)


def test_every_row_of_the_table_is_held_to_the_contract() -> None:
    held = [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, StoreContract)]

    assert len(BACKENDS) == len(held) - 1


def test_no_recorded_trace_is_left_out() -> None:
    assert 120 == len((VECTORS / "log_traces.jsonl").read_bytes().splitlines())
