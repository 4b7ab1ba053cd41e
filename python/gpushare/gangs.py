"""Gangs: the ranks of a distributed program, which hold one lease together.

Inside an iteration a rank waits for the others. If they took turns with each other, all of them
would wait. What ranks have in common is the store of torch.distributed's default group: the first
that comes writes the gang's name there.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import Any

from gpushare.devices import CPU
from gpushare.errors import GpushareError

_KEY = "gpushare/gang"


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
    """Returns gang, rank and ranks, as ``_C.register_job`` takes them.

    Args:
        name: The gang that was asked for; "": that of torch.distributed, if there is one.
        device: That this process shares.

    Raises:
        GpushareError: Its ranks are on several devices, or hosts.
    """
    if not is_distributed():
        return {"gang": name, "rank": 0, "ranks": 1}
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    if _is_spread(ranks, device):
        raise GpushareError(
            f"this is rank {rank} of {ranks} of a program on several devices or hosts, whose "
            "ranks wait for each other: gpushare gives no turns to those yet"
        )
    return {"gang": name or _common_name(), "rank": rank, "ranks": ranks}


def _common_name() -> str:
    from torch.distributed import distributed_c10d

    # torch has no public way to a group's store; a group of MPI's has none.
    store = distributed_c10d._get_default_store()
    proposed = f"ranks-{secrets.token_hex(4)}"
    # Set where there is none yet, and what there is then.
    return str(store.compare_set(_KEY, "", proposed).decode())


def _is_spread(ranks: int, device: str) -> bool:
    on_this_host = int(os.environ.get("LOCAL_WORLD_SIZE") or ranks)
    if on_this_host < ranks:
        return True
    if device == CPU:
        return False
    import torch

    # Each rank has its own, as all launchers have it; where only one is to be seen they share it.
    return torch.cuda.device_count() > 1
