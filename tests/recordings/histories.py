"""The history that a log gives a model at a resume, beside what the harness itself sent there."""

from collections.abc import Iterable

from incarnate.domain.events import AppendedEvent, UserMessage
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.model_messages import Message
from tests.recordings.recorded import Harness, prompt, read, requests_of
from tests.recordings.wire import differences, rendered, sent


def history_of(appended: Iterable[AppendedEvent], *prompts: str) -> list[Message]:
    """What the model may see after these events, and then these prompts."""
    history = ModelHistory("valid")
    for one in appended:
        history.apply(one)
    for text in prompts:
        event = UserMessage(id="asked", parent_id=None, text=text)
        history.apply(AppendedEvent(history.next_offset, 2, 0, event))
    return list(history.value)


def parting(harness: Harness, name: str) -> tuple[str, ...]:
    """Where the history of all runs before `name` and the first request of its own run part."""
    scenario, _, form = name.partition("/")
    runs = harness.runs[scenario]
    data = harness.left(runs[-1]) if form else b"\n".join([harness.stdout(run) for run in runs])
    log = read(harness.dialect, data, () if form else harness.prompts(*runs))
    asked = next(request for request in requests_of(harness, scenario) if request["kind"] == "main")
    ours = rendered(harness.wire, history_of(log.appended, prompt(harness, scenario)))
    return differences(ours, sent(harness.wire, asked["body"]))


def resumed(harness: Harness) -> list[str]:
    """The names of `parting`, of both forms where there are both."""
    asked = [name for name in harness.runs if any(r["kind"] == "main" for r in requests_of(harness, name))]
    on_disk = [f"{name}/disk" for name in asked if harness.left(harness.runs[name][-1])]
    return [*asked, *on_disk]
