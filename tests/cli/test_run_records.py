"""What `incarnate run` records of itself, for `incarnate ps` and whoever else may read it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incarnate.cli.run_parts import What, neighbours
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.commands import Command
from incarnate.supervision.registry import STATE_VARIABLE, Registry


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me@db/sessions?schema=a", "postgresql://db/sessions?schema=a"),
        ("postgresql://me:hush@hush@db/sessions", "postgresql://db/sessions"),
        ("postgresql://me:hush/hush@db/sessions", "postgresql://db/sessions"),
        ("postgresql://db/sessions?user=me&password=hu@sh&schema=a", "postgresql://db/sessions?user=me&schema=a"),
        ("postgresql:///sessions?sslpassword=hush", "postgresql:///sessions"),
        ("sqlite:////srv/a@b/x.db?durability=process", "sqlite:////srv/a@b/x.db?durability=process"),
    ],
)
def test_a_password_of_the_store_is_in_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, told: str
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    system: Any = SimpleNamespace(url=url)

    ours = neighbours(system, ActivationKey("a", "b"), What("codex", Command(("codex", "{prompt}"))))

    assert [told] == [found.record.store for found in Registry(tmp_path).live()]
    ours.close()
