"""Whatever torch shows of its allocator is, on gpushare, what it is on stock torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cuda import fake
from tests.cuda.programs import run, said_by_gpushare

MIB = 1 << 20
CAPACITY_BYTES = 256 * MIB
SCRIPT = "tests.cuda.allocator_script"
Coordinator = Callable[..., dict[str, str]]


def _views(
    coordinator: Coordinator, *, device_bytes: int = CAPACITY_BYTES, conf: str = "", **settings: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the script says on stock torch, and as a job that may use as much of its device."""
    # Torch 2.9 reads the second alone.
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    more = dict.fromkeys(names, conf) if conf else {}
    stock = fake.environment(capacity_bytes=CAPACITY_BYTES, late=True, GPUSHARE_DISABLE="1", **more)
    shared = fake.environment(capacity_bytes=device_bytes, late=True, **more)
    ended = [
        run("-m", SCRIPT, env=env) for env in (stock, shared | coordinator(require="1", **settings))
    ]
    for process in ended:
        assert process.returncode == 0, process.stderr
    first, second = (json.loads(process.stdout) for process in ended)
    assert (first.pop("is_ours"), second.pop("is_ours")) == (False, True)
    return first, second


@pytest.mark.parametrize(
    "conf",
    ["", "max_split_size_mb:32,garbage_collection_threshold:0.6,roundup_power2_divisions:4"],
    ids=["as it comes", "tuned"],
)
def test_a_job_alone_sees_what_stock_torch_shows(conf: str, coordinator: Coordinator) -> None:
    stock, shared = _views(coordinator, conf=conf)
    _assert_covers_all(stock)
    for part, said in stock.items():
        assert shared[part] == said, part


def test_a_job_sees_its_part_of_the_device_as_a_smaller_device(coordinator: Coordinator) -> None:
    stock, shared = _views(coordinator, device_bytes=CAPACITY_BYTES + 64 * MIB, capacity="256MiB")
    # Torch takes a fraction of what the driver calls the device's memory, and so it is larger here.
    # (2.9 takes it of what cudaMemGetInfo says.)
    stock_text, shared_text = (view["fraction"].pop("texts")[0] for view in (stock, shared))
    assert "64.00 MiB allowed" in stock_text
    of_all = stock_text.replace("64.00 MiB allowed", "80.00 MiB allowed")
    assert shared_text in (of_all, stock_text)
    assert shared == stock


def _assert_covers_all(view: dict[str, Any]) -> None:
    """Of the script itself: it has met what it is to compare."""
    assert view["violations"] == []
    assert view["side_stream"]["reused"] == [False, True]
    assert view["record_stream"]["reused"] == [False, True]
    assert view["pinned"]["is_same"]
    stats = view["fraction"]["stats"]
    assert stats["num_ooms"] == 3
    assert stats["num_alloc_retries"] > 0
    assert {action for action, _ in view["history"]} >= {
        *("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom")
    }


def test_an_error_of_torchs_is_followed_by_who_has_the_device(coordinator: Coordinator) -> None:
    env = fake.environment(capacity_bytes=CAPACITY_BYTES) | coordinator(require="1")
    ended = run("-m", SCRIPT, env=env)
    assert ended.returncode == 0, ended.stderr
    lines = said_by_gpushare(ended)
    # Two errors for want of memory; the third is for a limit of torch's own.
    assert [line.partition(": 64.0 MiB in use")[0] for line in lines] == [
        "gpushare: out of memory: allocate 256.0 MiB",
        "gpushare: out of memory: allocate 224.0 MiB",
    ]
    for line in lines:
        assert "the whole device has 256.0 MiB" in line
