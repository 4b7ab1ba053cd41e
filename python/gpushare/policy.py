"""The coordinator's policy, changed while jobs run."""

from __future__ import annotations

from gpushare import _native
from gpushare._coordinator.client import CoordinatorClient


def set_policy(name: str) -> None:
    """Changes whom the coordinator of this process's device serves next, from now on.

    That device is the CPU until torch has started CUDA. The policy is everybody's, so only the
    coordinator's user and root may. ``gpushare policy`` shows which there are, and does the same.

    Args:
        name: "fair", say.

    Raises:
        GpushareError: No policy is called so, or the coordinator is another user's.
        CoordinatorUnreachable: None answers.
    """
    CoordinatorClient(_native.sockets()).set_policy(name)
