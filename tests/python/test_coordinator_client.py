"""The command line's client against a fake coordinator on a real socket."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gpushare._coordinator.client import (
    MAX_MESSAGE_BYTES,
    CoordinatorClient,
    RefusedError,
    describe_connect_error,
)
from gpushare.errors import CoordinatorUnreachable
from tests.python.fake_coordinator import FakeCoordinator, make_report


def test_asks_for_the_status_in_the_protocols_words(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        assert CoordinatorClient([fake.path]).status() == make_report()
    assert fake.requests == [{"v": 1, "type": "status_request"}]


def test_says_whether_to_stop_by_force(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        CoordinatorClient([fake.path]).stop(force=True)
    assert fake.requests == [{"v": 1, "type": "stop", "force": True}]


def test_goes_on_to_the_next_socket(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "second", make_report()) as fake:
        client = CoordinatorClient([str(tmp_path / "first"), fake.path])
        assert client.status()["coordinator"]["pid"] == 77


def test_names_all_it_tried(tmp_path: Path) -> None:
    dead = tmp_path / "dead"
    with FakeCoordinator(dead, make_report()):
        pass
    with pytest.raises(CoordinatorUnreachable) as caught:
        CoordinatorClient([str(tmp_path / "none"), str(dead)]).status()
    assert f"{tmp_path}/none (absent)" in str(caught.value)
    assert f"{dead} (nobody listens)" in str(caught.value)


def test_who_is_barred_is_not_told_to_start_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bar(_client: CoordinatorClient, _path: str) -> None:  # root is barred from nothing
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(CoordinatorClient, "_connect_to", bar)
    with pytest.raises(CoordinatorUnreachable) as caught:
        CoordinatorClient([str(tmp_path / "sock")]).status()
    assert str(caught.value).endswith(". Ask its administrator for access")
    assert "coordinator start" not in str(caught.value)


def test_no_socket_configured_is_said() -> None:
    with pytest.raises(CoordinatorUnreachable, match="no socket is configured"):
        CoordinatorClient([]).status()


def test_refusal_carries_the_reason(tmp_path: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "2 jobs are connected"}
    with (
        FakeCoordinator(tmp_path / "sock", refusal) as fake,
        pytest.raises(RefusedError, match="2 jobs are connected"),
    ):
        CoordinatorClient([fake.path]).stop(force=False)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "hung up without an answer"),
        (b"hello", "is no coordinator"),
        (b"[1]", "is no coordinator"),
        ({"v": 1, "type": "status_report"}, "is no coordinator"),
        ({"v": 1, "type": "status_report", "report": "[]"}, "is no coordinator"),
        ({"v": 1, "type": "status_report", "report": "{}"}, "is no coordinator"),
        ({"v": 1, "type": "status_report", "report": '{"devices": [{}]}'}, "is no coordinator"),
        ({"v": 1, "type": "status_report", "report": '{"devices": null}'}, "is no coordinator"),
        pytest.param(
            {"v": 1, "type": "status_report", "report": 60_000 * "["},
            "is no coordinator",
            id="deep",
        ),
        ({"v": 1, "type": "welcome"}, "answered 'welcome'"),
        (b" " * (MAX_MESSAGE_BYTES + 1), "more than 131072 bytes"),
    ],
)
def test_strange_answers_are_unreachable_coordinators(
    tmp_path: Path, answer: dict[str, object] | bytes | None, said: str
) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", answer) as fake,
        pytest.raises(CoordinatorUnreachable, match=said),
    ):
        CoordinatorClient([fake.path]).status()


@pytest.mark.parametrize(
    ("report", "why"),
    [
        ("{}", 'the field "devices" is missing'),
        ('{"devices": 3}', "a value in it is of another kind than it should be"),
        ("{", "it is no JSON"),
        (60_000 * "[", "it is nested too deeply"),
    ],
)
def test_a_strange_answer_is_described_in_words(tmp_path: Path, report: str, why: str) -> None:
    """The text ended with the exception as Python writes it, such as KeyError('devices')."""
    answer = {"v": 1, "type": "status_report", "report": report}
    with (
        FakeCoordinator(tmp_path / "sock", answer) as fake,
        pytest.raises(CoordinatorUnreachable) as caught,
    ):
        CoordinatorClient([fake.path]).status()
    assert str(caught.value) == (
        f"what listens at {fake.path} is no coordinator of protocol 1, by its answer: {why}"
    )


def test_permission_denied_names_the_group(tmp_path: Path) -> None:
    path = tmp_path / "sock"
    path.touch()
    text = describe_connect_error(str(path), PermissionError(13, "Permission denied"))
    assert text.startswith(f"cannot open {path}: permission denied")
    if os.getegid() == 0:
        assert "it belongs to group root" in text
