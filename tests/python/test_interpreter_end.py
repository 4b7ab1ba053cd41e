"""A thread of the program that is inside a call which gpushare makes, when the interpreter ends."""

from __future__ import annotations

import pytest

# The interpreter ends while a daemon thread is inside a call that we make, and waits for the GIL.
DAEMON = """
import gpushare, threading, time, torch

class Slow(torch.nn.Linear):
    def forward(self, x):
        result = super().forward(x)
        wait("forward")
        return result

class SlowOptimizer(torch.optim.SGD):
    def step(self, closure=None):
        wait("step")
        return super().step(closure)

begun = threading.Event()
is_ending = False

def wait(where):
    if where != {where!r} or threading.current_thread() is threading.main_thread():
        return
    begun.set()
    while not is_ending:
        time.sleep(0.001)
    time.sleep(0.3)  # without the GIL, which nobody gives back any more

class Ending:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # the thread wakes here, while the interpreter ends

model = Slow(4, 4)
optimizer = SlowOptimizer(model.parameters(), lr=0.1)
job = gpushare.register(model, optimizer)

def train():
    while True:
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()

threading.Thread(target=train, daemon=True).start()
assert begun.wait(60)
import sys
sys.kept = Ending()
is_ending = True
print("ends")
"""


@pytest.mark.usefixtures("module_is_built")
@pytest.mark.parametrize("where", ["forward", "step"])
def test_a_daemon_thread_may_be_inside_a_call_when_the_interpreter_ends(run_python, where):
    code = DAEMON.format(where=where)
    ended = run_python(code, force_spill="1")
    assert ended.stdout == "ends\n"
    assert ended.stderr == ""
