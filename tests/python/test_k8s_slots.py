"""Slots of devices: which a container should get, and what it gets with them."""

from __future__ import annotations

import pytest

from gpushare.cli.k8s.slots import (
    Device,
    SlotError,
    UnhealthyError,
    grant,
    preferred,
    slots_of,
)

GPUS = [f"cuda:GPU-{number}a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9" for number in range(2)]
SOCKETS = [f"/run/gpushare/{name[5:]}.sock" for name in GPUS]
BOTH = {name: Device(name, path) for name, path in zip(GPUS, SOCKETS, strict=True)}
CPU = {"cpu": Device("cpu", "/run/gpushare/sock")}


def free(first: int, second: int) -> list[str]:
    """The last slots of two devices; the first ones are taken."""
    return slots_of("cpu:0", 4)[4 - first :] + slots_of("cpu:1", 4)[4 - second :]


@pytest.mark.parametrize(
    ("available", "must_have", "num", "expected"),
    [
        (free(4, 4), [], 1, ["cpu:0::0"]),
        (free(2, 3), [], 1, ["cpu:1::1"]),
        (free(1, 4), [], 2, ["cpu:1::0", "cpu:0::3"]),
        (free(1, 4), [], 3, ["cpu:1::0", "cpu:0::3", "cpu:1::1"]),
        (free(4, 2), ["cpu:0::2"], 2, ["cpu:0::2", "cpu:1::2"]),
        (free(0, 2), [], 2, ["cpu:1::2", "cpu:1::3"]),
        (free(0, 1), [], 3, ["cpu:1::3"]),
        ([], [], 1, []),
        (slots_of("cpu", 12)[8:], [], 3, ["cpu::8", "cpu::9", "cpu::10"]),
    ],
)
def test_it_spreads_over_the_devices_with_most_free_slots(
    available: list[str], must_have: list[str], num: int, expected: list[str]
) -> None:
    assert preferred(available, must_have, num) == expected


def test_a_slot_names_its_device_and_its_coordinator() -> None:
    environment = grant(["cpu::3"], CPU, 4)
    assert environment == {
        "GPUSHARE_DEVICE": "cpu",
        "GPUSHARE_SOCKET": "/run/gpushare/sock",
        "GPUSHARE_REQUIRE": "1",
    }
    shown = grant([f"{GPUS[1]}::0"], BOTH, 4)
    assert shown["NVIDIA_VISIBLE_DEVICES"] == GPUS[1].removeprefix("cuda:")
    assert (shown["GPUSHARE_DEVICE"], shown["GPUSHARE_SOCKET"]) == (GPUS[1], SOCKETS[1])


def test_two_slots_of_one_device_are_twice_the_weight() -> None:
    assert grant(["cpu::0", "cpu::2"], CPU, 4)["GPUSHARE_WEIGHT"] == "2"


def test_slots_of_two_gpus_show_both_and_leave_the_choice_to_each_process() -> None:
    env = grant([f"{name}::1" for name in reversed(GPUS)], BOTH, 4)
    assert env == {
        "GPUSHARE_REQUIRE": "1",
        "NVIDIA_VISIBLE_DEVICES": ",".join(name.removeprefix("cuda:") for name in GPUS),
    }


def test_slots_of_two_parts_of_the_cpu_leave_the_choice_to_the_coordinator() -> None:
    parts = {name: Device(name, "/run/gpushare/sock") for name in ("cpu:0", "cpu:1")}
    env = grant(["cpu:0::0", "cpu:1::0"], parts, 4)
    assert (env["GPUSHARE_DEVICE"], env["GPUSHARE_SOCKET"]) == ("any", "/run/gpushare/sock")
    assert "NVIDIA_VISIBLE_DEVICES" not in env


@pytest.mark.parametrize(
    "slots", [[], ["cpu::4"], ["cpu::-1"], ["cpu"], ["cuda::0"], [""], ["cpu::0", "cpu::0"]]
)
def test_slots_that_do_not_exist_are_refused(slots: list[str]) -> None:
    with pytest.raises(SlotError):
        grant(slots, CPU, 4)


def test_a_device_without_a_coordinator_is_refused() -> None:
    with pytest.raises(UnhealthyError, match="does not answer"):
        grant(["cpu::0"], {"cpu": Device("cpu", "/x", is_healthy=False)}, 4)
