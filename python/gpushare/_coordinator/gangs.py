"""Gangs: the ranks of a distributed program, which run together.

Inside an iteration a rank waits for the others. If they took turns with each other, all of them
would wait. So all of them need the same coordinator, on one of its devices or on several, or
coordinators with the same arbiter. What ranks have in common is the store of torch.distributed's
default group: the first that comes writes the gang's name there. Workers of torch.distributed.rpc
have no such group. What they have in common is the address where they have met.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from typing import Any

from gpushare import _native
from gpushare._settings.config import is_of_one_device
from gpushare._settings.devices import is_cpu
from gpushare.errors import GpushareError

_MOST_OF_A_NAME = 100
"""Bytes of a job's name in that of its gang, of 128."""


def is_distributed() -> bool:
    """Whether this process is one of several ranks, as torch.distributed knows by now."""
    distributed = sys.modules.get("torch.distributed")
    return (
        distributed is not None
        and distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )


def options(name: str, device: str) -> dict[str, Any]:
    """Returns gang, rank, ranks and arbiter, as ``_C.register_job`` takes them.

    Args:
        name: The gang that was asked for, which is believed; "": that of torch.distributed's ranks,
            or of its RPC's workers.
        device: That this process shares.

    Raises:
        GpushareError: The ranks have no coordinator in common, or cannot be asked.
    """
    if not is_distributed():
        return {"gang": name or _gang_of_rpc(device), "rank": 0, "ranks": 1, "arbiter": ""}
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    arbiter = _arbiter()
    place = " ".join([socket.gethostname(), *_native.sockets()])
    try:
        if arbiter:
            # A rank without it proposes its own place. So all have the arbiter, or are told.
            is_here = bool(name) or _agree("place", arbiter) == arbiter
        else:
            # A rank with a device of its own proposes that, so that others are told, too.
            may_be_here = not _has_own_device(device)
            is_here = bool(name) or (_agree("place", place) == place and may_be_here)
        gang = name or _agree("gang", _new_name())
    # Each backend and store of torch's has errors of its own; all of them mean the same here.
    except Exception as error:
        raise GpushareError(
            f"this is rank {rank} of {ranks} of a program, and cannot ask the others whether they "
            f"have its coordinator ({type(error).__name__}: {error}), so it gets no turns. If they "
            'have, register(gang="NAME") says so'
        ) from error
    if not is_here:
        raise GpushareError(
            f"this is rank {rank} of {ranks} of a program on several devices or hosts without a "
            "coordinator in common, whose ranks wait for each other, so it gets no turns. On one "
            "host, GPUSHARE_SOCKET can name one coordinator of all devices. Over hosts, "
            "GPUSHARE_ARBITER names one arbiter, with the same text for all ranks"
        )
    return {"gang": gang, "rank": rank, "ranks": ranks, "arbiter": arbiter}


def _new_name() -> str:
    """Returns a gang's name that no other has.

    It begins with the job's name where the launcher has given one: people read it where others
    wait for the gang.
    """
    begin = (_native.settings().name or "ranks").encode()[:_MOST_OF_A_NAME]
    return f"{begin.decode(errors='ignore')}-{secrets.token_hex(4)}"


def _arbiter() -> str:
    """Returns where the arbiter of this process's coordinator listens; "": it has none."""
    address = _native.settings().arbiter
    return "" if address == "none" else address


def _gang_of_rpc(device: str) -> str:
    """Returns the name that the workers of torch's RPC have in common; "" if this is none of them.

    Raises:
        GpushareError: The workers are on several devices, or how they have met is not known.
    """
    api = sys.modules.get("torch.distributed.rpc.api")
    if api is None or not api._is_current_rpc_agent_set():
        return ""
    # torch has no public way to the number of workers, nor to the store where they have met.
    workers = len(api._get_current_rpc_agent().get_worker_infos())
    address = [os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT")]
    if workers < 2:
        return ""
    if _has_own_device(device):
        raise GpushareError(
            f"this is one of {workers} workers of torch.distributed.rpc on several devices, which "
            "wait for each other: gpushare gives no turns to those yet"
        )
    if not all(address):
        raise GpushareError(
            f"this is one of {workers} workers of torch.distributed.rpc, which have not met at "
            "MASTER_ADDR and MASTER_PORT, so it gets no turns. If they are on this device, "
            'register(gang="NAME") says so'
        )
    return "rpc-" + "-".join(address)


def _agree(key: str, proposed: str) -> str:
    """Returns what the first of the ranks proposed."""
    from torch.distributed import distributed_c10d

    # torch has no public way to a group's store; a group of MPI's has none.
    store = distributed_c10d._get_default_store()
    return str(store.compare_set(f"gpushare/{key}", "", proposed).decode())


def _has_own_device(device: str) -> bool:
    """Whether the ranks have a coordinator each: the first that asks knows of no other's place."""
    on_this_host = os.environ.get("LOCAL_WORLD_SIZE", "")
    if on_this_host and on_this_host != os.environ.get("WORLD_SIZE", on_this_host):
        return True
    if is_cpu(device) or not any(is_of_one_device(path) for path in _native.sockets()):
        return False
    import torch

    # Launchers give each rank its own; ranks that see only one share it.
    return torch.cuda.device_count() > 1
