"""From the name of a scenario to the function."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

import click

from incarnate.cli.choices import nearest
from incarnate.cli.errors import UsageFailure
from incarnate.simulation import SCENARIOS, Scenario

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

__all__ = ["scenario_of"]


def scenario_of(name: str) -> Scenario:
    """The scenario of that name. Its folder stays importable until the command ends: it may import as it runs.

    Raises:
        UsageFailure: there is none, or its module cannot be imported.
    """
    known = SCENARIOS.get(name)
    if known is not None:
        return known
    place, separator, function = name.rpartition(":")
    if not (separator and place):
        meant = nearest(name, SCENARIOS)
        asked = "" if meant is None else f"did you mean {meant}? "
        raise UsageFailure(
            f"no scenario {name!r} comes with incarnate",
            f"{asked}write one of {', '.join(SCENARIOS)}, or MODULE:FUNCTION",
        )
    found = getattr(_module(place), function, None)
    if not callable(found):
        raise UsageFailure(f"{place} has no function {function!r}", "name a function that takes a Simulation")
    scenario: Scenario = found
    return scenario


def _module(place: str) -> ModuleType:
    path = Path(place).absolute()
    is_file = place.endswith(".py")
    if is_file and not path.is_file():
        raise UsageFailure(f"there is no file {place}", "name a Python file")
    folder, name = _as_pytest_names(path) if is_file else (Path.cwd(), place)  # the latter as `python -m` has it
    click.get_current_context().with_resource(_importable(folder))
    try:
        return _from_file(name, path) if is_file else import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also what asks the program to end, or a test to be left out
        raise _not_imported(place, folder, error) from error


def _as_pytest_names(path: Path) -> tuple[Path, str]:
    """The folder above all packages that a file is in, and the file's name from there: its imports then work here too.

    A repeat command of a test's scenario would find nothing of what lies beside the test otherwise.
    """
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) or path.stem


@contextmanager
def _importable(folder: Path) -> Generator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the module may have tidied up itself
            sys.path.remove(str(folder))


def _from_file(name: str, path: Path) -> ModuleType:
    package = name.rpartition(".")[0]
    if package and "." not in path.stem:
        import_module(package)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None, "a file whose name ends in .py has one"
    module = module_from_spec(spec)
    if known is None:  # a dataclass looks for its module there; another module of the name is not to be displaced
        sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if known is None:
            sys.modules.pop(name, None)
        raise
    return module


def _not_imported(place: str, folder: Path, error: BaseException) -> UsageFailure:
    where = _line_of(folder, error)
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if where is None and missing is not None:
        return UsageFailure(f"no module {missing!r} is found", "name an installed module, one below here, or a FILE.py")
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    told = f"{where or place}: {said}"
    if missing is not None:
        return UsageFailure(told, f"install {missing}, or put its folder on PYTHONPATH; {folder} is searched already")
    return UsageFailure(told, f"mend it, so that {place} can be imported")


def _line_of(folder: Path, error: BaseException) -> str | None:
    """File and line of what failed: where `folder` holds it, the last line there, not one of a library further down."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}:{error.lineno}"
    frames = [(frame.filename, frame.lineno) for frame in extract_tb(error.__traceback__)]
    importers = {__file__, import_module.__code__.co_filename}
    others = [one for one in frames if one[0] not in importers and not one[0].startswith("<frozen ")]
    own = [one for one in others if Path(one[0]).is_relative_to(folder) and "site-packages" not in Path(one[0]).parts]
    return next((f"{_shown(file)}:{line}" for file, line in reversed(own or others)), None)


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
