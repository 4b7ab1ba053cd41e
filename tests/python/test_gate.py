"""The gate over a compiled module that only writes down what it is asked."""

from __future__ import annotations

import pytest

from gpushare.gate import Gate


class SlowNative:
    """A compiled module whose gate opens at the third call; its time passes in the gate alone."""

    def __init__(self, takes_seconds=None):
        self.calls = []
        self.takes_seconds = takes_seconds
        self.now = 1000.0

    def begin_iteration(self, timeout_seconds):
        self.calls.append(timeout_seconds)
        self.now += self.takes_seconds or timeout_seconds
        return len(self.calls) == 3

    def explain(self, _timeout_seconds):
        return "job 3 (u1001/gpt) holds the device"

    def end_iteration(self, kind, is_optimizer_step):
        self.calls.append((kind, is_optimizer_step))

    def spill_and_restore(self):
        self.calls.append("moved")

    def begin_step(self):
        return 1

    def mark_late(self, addresses):
        self.calls.append(addresses)

    def give_up(self):
        self.calls.append("gave up")

    def close_lease(self, kind):
        self.calls.append(kind)


def test_a_long_wait_says_who_holds_the_device(capsys, monkeypatch):
    native = SlowNative()
    monkeypatch.setattr("gpushare.gate.time.monotonic", lambda: native.now)
    monkeypatch.setattr("gpushare.gate._said_at", float("-inf"))
    gate = Gate(native)
    assert not gate.try_enter()
    gate.wait_on()
    assert native.calls == [5.0, 60.0, 60.0]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert all(line.startswith("gpushare: waiting for ") for line in said)
    assert all(line.endswith("job 3 (u1001/gpt) holds the device") for line in said)


def test_of_many_long_waits_one_a_minute_says_so(capsys, monkeypatch):
    native = SlowNative(takes_seconds=10)
    monkeypatch.setattr("gpushare.gate.time.monotonic", lambda: native.now)
    monkeypatch.setattr("gpushare.gate._said_at", float("-inf"))
    for wait in range(4):
        gate = Gate(native)  # evaluation outside iterations has one for each wait
        native.calls = [wait]
        assert not gate.try_enter()
        native.calls = [wait, wait]
        gate.wait_on()
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_an_interrupted_long_wait_gives_its_place_up(monkeypatch):
    native = SlowNative()

    def interrupt(_timeout_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(native, "explain", interrupt)
    monkeypatch.setattr("gpushare.gate._said_at", float("-inf"))
    with pytest.raises(KeyboardInterrupt):
        Gate(native).wait_on()
    assert native.calls == ["gave up"]


def test_forced_spills_happen_at_each_boundary():
    native = SlowNative()
    gate = Gate(native, force_spill=True)
    gate.leave("forward", False)
    assert native.calls == [("forward", False), "moved"]
    gate.close()
    assert native.calls[-1] == "exception"
