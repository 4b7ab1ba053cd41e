"""A lease is given up inside an iteration on an idle device, and that changes no bit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.cuda import fake
from tests.support.job_process import JobProcess

MODULE = "tests.cuda.safepoint_job"
MIB = 1 << 20

Environment = Callable[..., dict[str, str]]


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_interrupted_job_waits_for_what_is_pending_first(
    device: Environment, coordinator: Environment, where: str
) -> None:
    env = device(512 * MIB, late=True) | coordinator(policy="priority", require="1")
    with ExitStack() as stack:
        train, serve = (
            stack.enter_context(JobProcess(what, env=env, module=MODULE))
            for what in (where, "serve")
        )
        train.wait_ready()
        serve.wait_ready()
        train.go()
        assert train.say() == {"inside": True}
        serve.go()
        assert train.say()["before"] > 0, "nothing is pending"
        assert serve.say() == {"staying": True}
        assert train.say() == {"without_lease": 0}
        served = serve.go().result()
        trained = train.result()
    with JobProcess("alone", env=fake.environment(), module=MODULE) as job:
        alone = job.wait_ready().go().result()
    assert trained["interruptions"] == 1
    assert trained["digest"] == alone["digest"]
    assert trained["violations"] == served["violations"] == []
