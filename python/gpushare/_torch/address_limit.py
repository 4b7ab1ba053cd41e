"""A program that limits its own address space (RLIMIT_AS) means the memory that it makes.

The kernel counts reserved addresses too, of which gpushare takes a tebibyte at once. Without this,
a program that sets 12 GiB for itself, as many do against running out of memory, could allocate
nothing more. A limit that was there before, as of ``ulimit -v``, needs nothing: less is reserved
then (``csrc/vm/calls/address_limit.h``).
"""

from __future__ import annotations

import functools
import os
import resource
from typing import Any

_UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def leave_out(reserved_bytes: int) -> None:
    """Lets module ``resource`` set and show the address space of this process without our part.

    Args:
        reserved_bytes: Our part. It is there from now on.
    """
    set_limit, get_limit, prlimit = resource.setrlimit, resource.getrlimit, resource.prlimit
    if get_limit(resource.RLIMIT_AS) != _UNLIMITED:
        return

    def shifted(limits: Any, by: int) -> Any:
        if by == 0:
            return limits
        soft, hard = limits
        return tuple(each if each == resource.RLIM_INFINITY else each + by for each in (soft, hard))

    @functools.wraps(set_limit)
    def setrlimit(which: int, limits: Any, /) -> None:
        set_limit(which, shifted(limits, reserved_bytes if which == resource.RLIMIT_AS else 0))

    @functools.wraps(get_limit)
    def getrlimit(which: int, /) -> Any:
        return shifted(get_limit(which), -reserved_bytes if which == resource.RLIMIT_AS else 0)

    @functools.wraps(prlimit)
    def prlimit_(pid: int, which: int, /, *limits: Any) -> Any:
        is_ours = which == resource.RLIMIT_AS and pid in {0, os.getpid()}
        by = reserved_bytes if is_ours else 0
        return shifted(prlimit(pid, which, *(shifted(each, by) for each in limits)), -by)

    resource.setrlimit, resource.getrlimit = setrlimit, getrlimit
    resource.prlimit = prlimit_
