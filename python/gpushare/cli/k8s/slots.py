"""Slots: the parts of a device that the kubelet counts, and what a container gets with them.

The kubelet gives each slot to one container. A slot is no fixed part of the device's memory or
time: the coordinator decides whose turn it is and which memory moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpushare._settings.devices import CUDA_PREFIX

_BETWEEN = "::"


class SlotError(ValueError):
    """A request names slots that cannot be given."""


class UnhealthyError(SlotError):
    """The device of the slots is unhealthy now."""


@dataclass(frozen=True)
class Device:
    """A device that a coordinator shares."""

    name: str
    """ "cpu", or "cuda:" and a UUID."""
    socket: str
    """The path of its coordinator's socket."""
    is_healthy: bool = True


def slots_of(device_name: str, num: int) -> list[str]:
    """Returns the names of a device's slots."""
    return [f"{device_name}{_BETWEEN}{number}" for number in range(num)]


def device_of(slot: str) -> str:
    """Returns the name of a slot's device."""
    return slot.rpartition(_BETWEEN)[0]


def grant(slots: Sequence[str], devices: Mapping[str, Device], per_device: int) -> dict[str, str]:
    """Returns the environment variables that a container with these slots gets.

    Args:
        slots: As the kubelet names them.
        devices: Those there are, by name.
        per_device: How many slots each has.

    Raises:
        SlotError: There is none, one is unknown, or one is named twice.
        UnhealthyError: The coordinator of one does not answer.
    """
    if not slots:
        raise SlotError("the request names no slot")
    if len(set(slots)) != len(slots):
        raise SlotError("the request names a slot twice")
    known = {slot for name in devices for slot in slots_of(name, per_device)}
    for slot in slots:
        if slot not in known:
            raise SlotError(f"there is no slot {slot[:100]!r}")
    counts = Counter(device_of(slot) for slot in slots)
    names = sorted(counts)
    for name in names:
        if not devices[name].is_healthy:
            raise UnhealthyError(f"{name} is not healthy: its coordinator does not answer")
    return _environment([devices[name] for name in names], max(counts.values()))


def _environment(devices: Sequence[Device], weight: int) -> dict[str, str]:
    # A job that cannot share ends with exit code 3, instead of taking the device from the others.
    env = {"GPUSHARE_REQUIRE": "1"}
    if weight > 1:
        env["GPUSHARE_WEIGHT"] = str(weight)
    is_cuda = [each.name.startswith(CUDA_PREFIX) for each in devices]
    if len(devices) == 1:
        env["GPUSHARE_DEVICE"] = devices[0].name
    elif not any(is_cuda):
        env["GPUSHARE_DEVICE"] = "any"  # the coordinator chooses
    sockets = {each.socket for each in devices}
    if len(sockets) == 1:
        (env["GPUSHARE_SOCKET"],) = sockets
    gpus = [each.name.removeprefix(CUDA_PREFIX) for each in devices if each.name != "cpu"]
    if all(is_cuda):
        env["NVIDIA_VISIBLE_DEVICES"] = ",".join(gpus)
    return env


def preferred(available: Iterable[str], must_have: Sequence[str], num: int) -> list[str]:
    """Returns which of the free slots a container should get, those that it must have first.

    Each slot is taken from the device of which the container has fewest slots so far. Among equal
    devices the one with most free slots goes first, then the first by name. So a container gets
    two slots of one device only if there are not enough devices.

    Args:
        available: The free slots.
        must_have: Slots that are in the answer in any case.
        num: How many slots the answer has, ``must_have`` included; fewer if too few are free.
    """
    chosen = list(dict.fromkeys(must_have))
    free: dict[str, list[str]] = {}
    for slot in sorted(set(available) - set(chosen), key=_order):
        free.setdefault(device_of(slot), []).append(slot)
    has = Counter(device_of(slot) for slot in chosen)
    while len(chosen) < num and free:
        name = min(free, key=lambda each: (has[each], -len(free[each]), each))
        chosen.append(free[name].pop(0))
        has[name] += 1
        if not free[name]:
            del free[name]
    return chosen


def _order(slot: str) -> tuple[str, int, str]:
    number = slot.rpartition(_BETWEEN)[2]
    return device_of(slot), len(number), number
