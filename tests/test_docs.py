"""What all documents share: links lead somewhere, code is run by a test, commands and paths are there."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from incarnate.cli.app import cli

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
RUN_BY = {
    "README.md": "test_readme.py",
    "docs/asyncio.md": "test_asyncio_guide.py",
    "docs/dialects.md": "test_dialects_guide.py",
    "docs/library.md": "test_library_guide.py",
    "docs/openai-agents.md": "bridges/test_openai_agents_guide.py",
    "docs/operations.md": "test_operations_guide.py",
    "docs/scaling.md": "test_scaling_guide.py",
    "docs/simulation.md": "simulation/test_guide.py",
    "docs/storage-backends.md": "test_storage_backends_guide.py",
    "docs/studio.md": "studio/test_guide.py",
    "docs/testing.md": "simulation/test_pytest_plugin.py",
}
"""Each document that shows Python, with the test that runs it."""

COMMAND = re.compile(r"^(?:    |\$ )?(?:\.venv/bin/)?incarnate (?=[a-z]+\b)(.*?)(?:\s+#.*)?$")
PLACE = re.compile(r"`((?:[a-z_]+/)+(?:[\w.-]+\.\w+)?)`")
OF_THE_USER = {"folder/", "sessions.db.raw/", "folder.raw/", "subagents/", "disk/"}


def names(documents: list[Path]) -> list[str]:
    return [str(document.relative_to(ROOT)) for document in documents]


def commands(text: str) -> list[str]:
    """The command lines of a document, in blocks of their own, each on one line."""
    joined = re.sub(r"\s*\\\n\s+", " ", text)
    return [found[1] for line in joined.splitlines() if line[:1] in " $i" and (found := COMMAND.match(line))]


def anchors(document: Path) -> set[str]:
    """The headings as an address names them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_its_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = re.findall(r"\]\(((?!https:)[^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    broken = []
    for link in (one or other for one, other in links):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)

    assert [] == broken


def test_every_document_that_shows_python_is_run_by_a_test() -> None:
    showing = [one for one in DOCUMENTS if "```python" in one.read_text(encoding="utf-8")]

    assert sorted(RUN_BY) == names(showing)
    assert [] == [
        document
        for document, test in RUN_BY.items()
        if Path(document).name not in (ROOT / "tests" / test).read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_the_commands_that_it_shows_are_there_with_their_options(document: Path) -> None:
    unknown = []
    for line in commands(document.read_text(encoding="utf-8")):
        own = line.partition(" -- ")[0]  # behind it stands another program's command line
        name, *words = shlex.split(re.sub(r"[\[\]|]", " ", own))
        command = cli.commands.get(name)
        options = [option for one in command.params for option in [*one.opts, *one.secondary_opts]] if command else []
        unknown += [line] if command is None else [w for w in words if w[:1] == "-" and w not in [*options, "-"]]

    assert [] == unknown


def test_commands_are_found_in_documents() -> None:
    assert 40 < sum(len(commands(one.read_text(encoding="utf-8"))) for one in DOCUMENTS)


def test_the_benchmarks_that_are_named_are_there() -> None:
    text = "".join(one.read_text(encoding="utf-8") for one in DOCUMENTS)
    groups = re.findall(r'^    "([a-z_-]+)": ', (ROOT / "benchmarks" / "run").read_text("utf-8"), flags=re.MULTILINE)

    assert set() < set(re.findall(r"--only ([a-z_-]+)", text)) <= set(groups)


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_the_files_of_the_repository_that_it_names_are_there(document: Path) -> None:
    named = {path for path in PLACE.findall(document.read_text(encoding="utf-8")) if "NAME" not in path}

    assert [] == sorted(path for path in named - OF_THE_USER if not (ROOT / path).exists())


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_what_is_on_no_index_is_installed_from_the_clone(document: Path) -> None:
    assert [] == re.findall(r"pip install [^`\n]*\bincarnate\b(?! )[^`\n]*", document.read_text(encoding="utf-8"))


def test_each_extra_that_is_installed_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    told = {document: re.findall(r"pip install '\.\[(.+?)\]'", document.read_text("utf-8")) for document in DOCUMENTS}

    assert set() == {name for found in told.values() for names in found for name in names.split(",")} - set(extras)
    assert "cli,studio" in told[ROOT / "README.md"]
