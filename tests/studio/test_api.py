"""The API held against its own description, by requests that follow it and by requests that do not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok

from incarnate import ActivationKey, AppendMany, EffectEntry, SessionSystem
from incarnate.studio.openapi import document
from tests.support.projections import recorded_logs
from tests.support.studio_server import Served

KEYS = [ActivationKey("pik-1", "implement"), ActivationKey("100% / ü", "a?b#c")]
STREAMS = r"/changes$"


@pytest.fixture(scope="module")
def served(swift_module_path: Path) -> Iterator[Served]:
    url = f"sqlite:///{swift_module_path}/sessions.db"
    with SessionSystem.open(url) as system:
        for key, log in zip(KEYS, recorded_logs(), strict=False):
            session = system.claim(key)
            session.emit_many(log["events"])
            session.checkpoint("sha-1", [EffectEntry(id="x", kind="push", detail={"to": "main"})])
            system.activation(key).ask(AppendMany(session.incarnation, 1, tuple(log["events"][1:3])))
    with Served(url) as served:
        yield served


API = schemathesis.openapi.from_dict(document()).exclude(path_regex=STREAMS)
OPERATIONS: dict[str, Any] = {
    found.ok().label: found.ok() for found in API.get_all_operations() if isinstance(found, Ok)
}


@API.hook
def map_path_parameters(_context: object, parameters: dict[str, object] | None) -> dict[str, object] | None:
    """Random keys lead nowhere: most requests are for sessions that are there."""
    if parameters and "key" in parameters:
        number = len(str(parameters["key"])) % 4
        parameters["key"] = str(KEYS[number]) if number < len(KEYS) else parameters["key"]
    generation = (parameters or {}).get("generation")
    if parameters and isinstance(generation, int) and generation > 0:
        parameters["generation"] = 1 + generation % 3
    return parameters


def modes() -> Iterator[tuple[str, schemathesis.GenerationMode]]:
    for label, operation in OPERATIONS.items():
        yield label, schemathesis.GenerationMode.POSITIVE
        if operation.query or operation.body:  # else nothing can be wrong with it
            yield label, schemathesis.GenerationMode.NEGATIVE


@pytest.mark.parametrize(("label", "mode"), list(modes()))
def test_every_answer_is_as_it_is_described(label: str, mode: schemathesis.GenerationMode, served: Served) -> None:
    seen: set[int] = set()

    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def hold(case: Any) -> None:
        seen.add(case.call_and_validate(base_url=served.url).status_code)

    hold()
    assert (200 in seen) or mode is schemathesis.GenerationMode.NEGATIVE


def test_the_description_is_what_the_server_gives(served: Served) -> None:
    assert document() == served.json("/api/openapi.json")
