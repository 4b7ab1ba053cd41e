"""A coordinator of its own for each test that starts jobs: the fixture of all end-to-end tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack

import pytest

from benchmarks.processes import private_coordinator, read_status

_ENVIRONMENTS = pytest.StashKey[list[dict[str, str]]]()


@pytest.fixture
def coordinator(request: pytest.FixtureRequest) -> Iterator[Callable[..., dict[str, str]]]:
    """coordinator(capacity="64MiB", ...) -> the environment of jobs that meet there."""
    opened = request.node.stash.setdefault(_ENVIRONMENTS, [])
    with ExitStack() as stack:

        def open_one(**settings: str) -> dict[str, str]:
            opened.append(stack.enter_context(private_coordinator(**settings)))
            return opened[-1]

        yield open_one


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails shows what its coordinators decided: who waited, and for what."""
    report = yield
    if report.when == "call" and report.failed:
        for env in item.stash.get(_ENVIRONMENTS, []):
            status = json.dumps(read_status(env), indent=1)
            report.sections.append((f"coordinator at {env['GPUSHARE_SOCKET']}", status))
    return report
