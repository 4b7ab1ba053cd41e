"""Threads of one job that call its model at the same time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack

from tests.e2e.alone import arguments
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]

SERVER = """
import sys, threading
import gpushare, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).eval()
job = gpushare.register(model)
inputs = [torch.randn(64, 512) for _ in range(3)]
with torch.no_grad():
    expected = [model(x) for x in inputs]
num_calls = [0] * 3
are_equal = [True] * 3
is_over = False

def serve(number):
    with torch.no_grad():
        while not is_over:
            are_equal[number] &= torch.equal(model(inputs[number]), expected[number])
            num_calls[number] += 1

threads = [threading.Thread(target=serve, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
print("{}", flush=True)
sys.stdin.readline()
is_over = True
for thread in threads:
    thread.join()
stats = job.stats()
print('{"done": true, "are_equal": %s, "leases": %d, "iterations": %d, "calls": %d}'
      % (str(all(are_equal)).lower(), stats.leases, stats.iterations, sum(num_calls)), flush=True)
"""


def test_a_server_on_several_threads_takes_turns_with_others(coordinator: Coordinator) -> None:
    """One of its threads is inside the model at any time, and none of them ever stops."""
    env = coordinator(capacity="256MiB", min_quantum="20ms")
    with ExitStack() as stack:
        server = stack.enter_context(JobProcess(command=[sys.executable, "-c", SERVER], env=env))
        server.say()
        job = stack.enter_context(JobProcess(*arguments("mlp", "adam", 1, 40), "--shared", env=env))
        job.wait_ready().go().result()
        result = server.go().result()
    assert result["are_equal"]
    assert result["leases"] >= 2
    # Each call is an iteration, but one that ends while another thread waits for the lease.
    assert result["iterations"] >= result["calls"] / 2
