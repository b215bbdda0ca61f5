"""What every test shares: hypothesis without clocks, interrupts that arrive, and no skip where skips are forbidden."""

import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine is slow at making examples too.
settings.register_profile("incarnate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("incarnate")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup: every process that is interrupted inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)

SKIPS_FORBIDDEN = os.environ.get("INCARNATE_FORBID_SKIPS") == "1"


MEMORY = Path("/dev/shm")


@pytest.fixture
def swift_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one: for thousands of commits of which none is about the disk."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with in_memory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def swift_module_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same for all tests of a module."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path_factory.mktemp("module")
        return
    with in_memory() as folder:
        yield Path(folder)


def in_memory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="incarnate-", dir=MEMORY, ignore_cleanup_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    forbid_skip(report)
    return report


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure with its reason; an expected failure stays one."""
    if SKIPS_FORBIDDEN and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"no test may be skipped here, but: {reason}"
