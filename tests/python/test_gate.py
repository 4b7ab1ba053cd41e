"""The gate over a compiled module that only writes down what it is asked."""

from __future__ import annotations

from gpushare._torch.gate import Gate


class Native:
    """A compiled module."""

    def __init__(self):
        self.calls = []

    def begin_iteration(self):
        self.calls.append("entered")

    def end_iteration(self, kind, is_optimizer_step):
        self.calls.append((kind, is_optimizer_step))

    def spill_and_restore(self):
        self.calls.append("moved")

    def begin_step(self):
        return 1

    def live_bytes(self):
        return 2

    def close_lease(self, kind):
        self.calls.append(kind)


def test_forced_spills_happen_at_each_boundary():
    native = Native()
    gate = Gate(native)
    gate.enter()
    gate.leave("forward", False)
    assert native.calls == ["entered", ("forward", False), "moved"]
    gate.close()
    assert native.calls[-1] == "exception"
    assert (gate.begin_step(), gate.live_bytes()) == (1, 2)
