"""docs/scaling.md: its figures are those that one run of the benchmarks printed, and its example shards as it says."""

import re
from typing import Any

from benchmarks.scaling import DOCS, RESULTS, with_tables
from incarnate import ActivationKey, register_store
from incarnate.storage.memory import MemoryStore

GUIDE = DOCS.read_text(encoding="utf-8")


def test_its_tables_follow_from_what_the_benchmarks_printed() -> None:
    assert with_tables(GUIDE, RESULTS.read_text(encoding="utf-8")) == GUIDE


def test_other_figures_of_a_run_are_other_tables() -> None:
    printed = RESULTS.read_text(encoding="utf-8")
    [rate] = re.findall(r"^16 sessions, PostgreSQL +([\d,]+/s)", printed, flags=re.MULTILINE)
    text = with_tables(GUIDE, printed.replace(rate, "1,000/s"))

    assert "| all of it | 10,000/s ÷ 1,000/s | 10.0 times what this machine carried |" in text


def test_the_elements_of_a_process_instance_are_in_one_of_all_shards() -> None:
    [example] = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    namespace: dict[str, Any] = {}
    with register_store("postgresql", lambda *_, **__: MemoryStore()):  # there are no servers of these names here
        exec(compile(example, str(DOCS), "exec"), namespace)
    places = [
        [namespace["system_of"](ActivationKey(f"order-{number}", element)) for element in ("plan", "build", "ship")]
        for number in range(50)
    ]
    shards = [{namespace["systems"].index(system) for system in found} for found in places]
    for system in namespace["systems"]:
        system.close()

    assert {1} == {len(found) for found in shards}
    assert {0, 1} == set[int]().union(*shards)
