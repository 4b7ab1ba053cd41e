"""A part of a GPU as the device, and a process with two devices."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from benchmarks.device import machine

if TYPE_CHECKING:
    from tests.gpu.conftest import Run


def test_a_part_of_a_gpu_is_a_device_of_its_own(device: dict[str, str], run: Run) -> None:
    if machine.is_fake():
        device["FAKECUDA_NAME"] = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    elif not os.environ.get("CUDA_VISIBLE_DEVICES", "").startswith("MIG-"):
        pytest.skip("CUDA_VISIBLE_DEVICES names no part of a GPU (MIG-...)")
    said = run(
        """
        job = gpushare.register(torch.nn.Linear(8, 8).to("cuda"))
        numbers = torch.arange(1 << 20)
        with job.iteration():
            tensor = numbers.to("cuda")
        spill()
        stats = _native.load().job_stats()
        say(
            device=_native.device(),
            is_equal=torch.equal(tensor.cpu(), numbers),
            spilled=stats["spilled_total_bytes"],
        )
        """
    )
    assert said["device"].startswith("cuda:MIG-")
    assert said["is_equal"]
    assert said["spilled"] > 0


def test_of_two_devices_one_is_shared(device: dict[str, str], run: Run) -> None:
    if machine.is_fake():
        device["FAKECUDA_DEVICES"] = "2"
    program = """
        if torch.cuda.device_count() < 2:
            say(num_devices=1)
            raise SystemExit
        torch.manual_seed(0)
        first = torch.nn.Linear(512, 512).to("cuda:0")
        second = torch.nn.Linear(512, 8).to("cuda:1")
        optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
        job = gpushare.register()
        losses = []
        for number in range(4):
            x = torch.randn(64, 512, generator=torch.Generator().manual_seed(number))
            with job.iteration():
                optimizer.zero_grad()
                # By the host: where the devices have peer access, gpushare refuses it.
                hidden = first(x.to("cuda:0")).relu().cpu().to("cuda:1")
                loss = second(hidden).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            if job.is_managed:
                spill()
        say(num_devices=2, losses=losses, is_managed=job.is_managed)
        """
    ours = run(program)
    if ours["num_devices"] < 2:
        pytest.skip("there is one device")
    assert ours["losses"] == run(program, stock=True)["losses"]
    assert ours["is_managed"]
