"""A process that stands by with a warm context costs others that context, and takes up work later.

It has started CUDA and waits: as no job yet, as a job without a model, with a model on the host, or
with one that it has trained and whose memory left the device while it waited.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import gpushare_command, job_environment, read_status
from tests.cuda import fake
from tests.cuda.child import Parent, run, start

MIB = 1 << 20
CONTEXT_BYTES = 8 * MIB
# What one job needs, and less than two do: beside both contexts.
CAPACITY_BYTES = 80 * MIB
STEPS_BEFORE = 2
STEPS = 8
WAYS = ["no job", "no model", "a model on the host", "a trained model"]

Coordinator = Callable[..., dict[str, str]]


class Training:
    """A small model, on the host until its first step."""

    def __init__(self, seed: int) -> None:
        import torch
        from torch import nn

        torch.manual_seed(seed)
        self._model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024))
        self._optimizer = torch.optim.Adam(self._model.parameters())
        self.losses: list[float] = []

    def step(self) -> None:
        """In an iteration, if this is a job."""
        import torch

        self._model.cuda()
        self._optimizer.zero_grad()
        generator = torch.Generator().manual_seed(len(self.losses))
        loss = self._model(torch.randn(512, 1024, generator=generator).cuda()).square().mean()
        loss.backward()
        self._optimizer.step()
        self.losses.append(loss.item())


def stands_by(parent: Parent, way: str) -> dict[str, Any]:
    """A child that is warm, and trains once it hears something."""
    import torch

    import gpushare

    torch.cuda.synchronize()  # makes the context
    training = Training(1) if way in {"a model on the host", "a trained model"} else None
    if way != "no job":
        gpushare.register(name="standby")
    if way == "a trained model":
        _train(training, STEPS_BEFORE)
    parent.say("warm")
    parent.hear()
    return _train(training or Training(1), STEPS)


def _train(training: Training, steps: int) -> dict[str, Any]:
    """Until there are so many losses."""
    import gpushare

    job = gpushare.current() or gpushare.register(name="standby")
    while len(training.losses) < steps:
        with job.iteration():
            training.step()
    return _said(training, job)


def _said(training: Training, job: Any) -> dict[str, Any]:
    return {
        "losses": training.losses,
        "stats": vars(job.stats()) if job.is_managed else {},
        "violations": fake.violations(),
    }


def has_the_device(parent: Parent, end: str) -> dict[str, Any]:
    """A child: it takes the whole capacity in one iteration, then it trains until `end` exists."""
    import torch

    import gpushare

    job = gpushare.register(name="other")
    with job.iteration():
        torch.full((CAPACITY_BYTES,), 7, dtype=torch.uint8, device="cuda")
        parent.say(fake.used_bytes())
        parent.hear()
    torch.cuda.empty_cache()  # torch splits what it keeps, and then cannot give it back
    training = Training(2)
    while not Path(end).exists():
        with job.iteration():
            training.step()
        if len(training.losses) == 1:
            parent.say("training")
    return _said(training, job)


class World:
    """The device and the coordinator that the processes of a test share."""

    def __init__(self, device_file: Path, coordinator: Coordinator) -> None:
        where = coordinator(
            capacity=str(CAPACITY_BYTES),
            min_quantum="0",
            policy="rr",
            switch_loss="0.5",
            require="1",
            idle_spill="0.1s",
        )
        self.settings: dict[str, Any] = {
            **where,
            "capacity_bytes": CAPACITY_BYTES + 2 * CONTEXT_BYTES,
            "context_bytes": CONTEXT_BYTES,
            "device_file": device_file,
        }

    def jobs(self) -> dict[str, dict[str, Any]]:
        """What `gpushare status` says of each job, by its name."""
        report = read_status(fake.environment(**self.settings))
        return {job["name"]: job for device in report["devices"] for job in device["jobs"]}

    def screen(self) -> list[str]:
        """The lines of `gpushare status`."""
        done = subprocess.run(
            gpushare_command("status"),
            env=job_environment(fake.environment(**self.settings)),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()


@pytest.fixture
def world(device_file: Path, coordinator: Coordinator) -> World:
    """A device with room for one job and two contexts."""
    return World(device_file, coordinator)


@pytest.mark.parametrize("way", WAYS)
def test_others_have_all_of_the_device_until_it_wakes(
    way: str, world: World, tmp_path: Path
) -> None:
    standby = start(stands_by, way, **world.settings)
    assert standby.hear() == "warm"
    other = start(has_the_device, str(tmp_path / "end"), **world.settings)
    assert other.hear() == CAPACITY_BYTES + 2 * CONTEXT_BYTES, "more than two contexts is taken"
    _check_status(way, world)
    other.say("train")
    assert other.hear() == "training"
    standby.say("wake")
    woken = standby.result()
    (tmp_path / "end").touch()
    trained = other.result()
    assert woken["losses"] == _losses_alone(1)
    assert trained["losses"][:STEPS] == _losses_alone(2)[: len(trained["losses"])]
    assert (woken["violations"], trained["violations"]) == ([], [])
    assert trained["stats"]["leases"] > 1
    assert trained["stats"]["spilled_total_bytes"] > 0


def _check_status(way: str, world: World) -> None:
    """While another job runs in all of the device."""
    jobs = world.jobs()
    assert (jobs["other"]["state"], jobs["other"]["waits_for_room"]) == ("running", False)
    assert ("standby" in jobs) == (way != "no job")
    if way != "no job":
        idle = jobs["standby"]
        assert (idle["state"], idle["resident_bytes"]) == ("idle", 0)
        assert (idle["spilled_bytes"] > 0) == (way == "a trained model")
        (line,) = [line for line in world.screen() if " standby " in line]
        assert line.split()[3] == "idle"


@functools.cache
def _losses_alone(seed: int) -> list[float]:
    """On stock torch."""
    losses: list[float] = run(trains_alone, seed, GPUSHARE_DISABLE="1")["losses"]
    return losses


def trains_alone(_parent: Parent, seed: int) -> dict[str, Any]:
    """A child without gpushare."""
    return _train(Training(seed), STEPS)
