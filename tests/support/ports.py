"""Ports of this machine for the servers of tests."""

from __future__ import annotations

import socket


def free_ports(num: int) -> list[int]:
    """Returns ports that nobody listens at now."""
    opened = [socket.create_server(("", 0)) for _ in range(num)]
    ports = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    return ports
