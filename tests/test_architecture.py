"""The house rules that no linter knows: sizes, packaging, the domain's purity."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("actors", "bridges", "cli", "domain", "simulation", "storage", "studio", "supervision")
NO_ROOMS = {"benchmarks", "build", "dist", "docs", "fixtures", "scripts", "tests"}

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60
USUAL_LINES_OF_A_FUNCTION = 30  # nine functions in ten stay within this


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def library_files(*rooms: str) -> list[Path]:
    """The modules of some rooms; of all rooms, and the root's, when none is named."""
    at_root = [] if rooms else ROOT.glob("*.py")
    return sorted([*at_root, *(file for room in rooms or ROOMS for file in python_in(room))])


def python_in(room: str) -> Iterator[Path]:
    return (ROOT / room).rglob("*.py")


def place(file: Path, node: ast.AST) -> str:
    return f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def function_lengths() -> dict[str, int]:
    return {
        f"{place(file, node)} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for file in library_files()
        for node in functions(parse(file))
    }


def dotted(node: ast.AST) -> str:
    """`msgspec.json.Encoder` for the expression that reads so, else nothing."""
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)


def test_the_packages_of_the_project_are_the_folders_on_disk() -> None:
    on_disk = {
        ".".join(("incarnate", *init.parent.relative_to(ROOT).parts))
        for init in ROOT.rglob("__init__.py")
        if not any(part in NO_ROOMS or part.startswith(".") for part in init.relative_to(ROOT).parts)
    }

    assert sorted(on_disk) == project()["tool"]["setuptools"]["packages"]


def test_nothing_but_the_package_can_be_imported_at_the_root() -> None:
    stray = {file.name for file in ROOT.glob("*.py")} - {"__init__.py", "__main__.py"}

    assert set() == stray


def test_the_changelog_begins_with_the_version_of_the_project() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[^\]]*)\]", changelog, flags=re.MULTILINE)

    assert project()["project"]["version"] == versions[0]


def test_no_file_of_the_library_is_too_long() -> None:
    lengths = {str(file.relative_to(ROOT)): len(file.read_bytes().splitlines()) for file in library_files()}
    too_long = {file: lines for file, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE}

    assert {} == too_long


def test_no_function_of_the_library_is_too_long() -> None:
    lengths = function_lengths()
    too_long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION}

    assert {} == too_long


def test_nine_functions_in_ten_are_short() -> None:
    lengths = function_lengths()
    long = {name: lines for name, lines in lengths.items() if lines > USUAL_LINES_OF_A_FUNCTION}

    assert len(long) <= len(lengths) / 10, long


def test_the_domain_asks_no_clock() -> None:
    clocks = {"now", "today", "utcnow"}  # import-linter keeps the module `time` out
    asked = [
        f"{place(file, node)} {name}"
        for file in library_files("domain")
        for node, name in calls(parse(file))
        if name.rpartition(".")[2] in clocks
    ]

    assert [] == asked


def test_storage_and_actors_leave_json_to_the_domain() -> None:
    json = re.compile(r"\bmsgspec\.json\b|\bimport json\b|\bfrom (json|msgspec) import\b.*\bjson\b")
    own_json = [
        str(file.relative_to(ROOT))
        for file in library_files("actors", "storage")
        if json.search(file.read_text(encoding="utf-8"))
    ]

    assert [] == own_json


def test_encoders_and_decoders_are_built_once() -> None:
    built_at_each_call = {
        f"{place(file, node)} {name}"
        for file in library_files()
        for function in functions(parse(file))
        for node, name in calls(function)
        if name.endswith((".Encoder", ".Decoder"))
    }

    assert set() == built_at_each_call


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_imports_from_the_root(room: str) -> None:
    imports = [
        place(file, node)
        for file in library_files(room)
        for node in ast.walk(parse(file))
        if (isinstance(node, ast.ImportFrom) and node.module == "incarnate")
        or (isinstance(node, ast.Import) and any(a.name == "incarnate" for a in node.names))
    ]

    assert [] == imports
