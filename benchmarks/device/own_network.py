"""A network of its own for this process and those that it starts.

A coordinator claims its device by the name of an abstract socket, and such names are a network's:
coordinators in different networks do not see each other. So tests that each have a coordinator can
run at the same time on one device.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

_NEW_NETWORK = 0x40000000
_SET_FLAGS = 0x8914
_UP = 0x1


def enter() -> None:
    """Moves this process into a new network, in which it reaches itself alone.

    Raises:
        OSError: The process may not.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def is_allowed() -> bool:
    """Returns whether a process like this one may enter a network of its own."""
    child = os.fork()
    if child == 0:
        try:
            enter()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
