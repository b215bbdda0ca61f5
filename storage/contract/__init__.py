"""The contract of a store as tests, for every back end there is or will be.

A third party's tests are a subclass (`docs/storage-backends.md`):

```python
from incarnate.storage.contract import StoreContract

class TestMyStore(StoreContract):
    lacks = ("processes", "archives")

    def open_store(self, folder):
        return MyStore(folder / "my.db")
```

Each test is a sentence about `incarnate.storage.port.Store`; what holds an invariant of the design names it (`i2`).
What a store does not do it declares in `lacks`; the table below the tests tells, and a failure says what would exempt.

Raises:
    MissingExtraError: at its import, where pytest is not installed.
"""

from incarnate.domain.errors import MissingExtraError

try:
    import pytest
except ImportError as error:
    raise MissingExtraError("test", "incarnate.storage.contract") from error

_SENTENCES = (
    *(
        "appends",
        "archives",
        "batches",
        "checkpoints",
        "closing",
        "fences",
        "forks",
        "openings",
        "payloads",
        "processes",
    ),
    *("reading", "repeats", "retirement", "rewinds", "threads", "traces", "turns"),
)
# Before they are imported, so that a failing `assert` of theirs tells both sides.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _SENTENCES))

from incarnate.storage.contract.harness import Capability, needs  # noqa: E402
from incarnate.storage.contract.store import StoreContract  # noqa: E402

__all__ = ["Capability", "StoreContract", "needs"]
