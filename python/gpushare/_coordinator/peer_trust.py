"""Whom the command line believes to be a coordinator; jobs do the same (``csrc/ipc/peer_trust.h``).

A socket's path proves nothing: where a user has no folder of his own for sockets, it lies in /tmp,
and anybody can make it first.
"""

from __future__ import annotations

import os
import pwd
import socket
import stat
import struct

_CREDENTIALS = struct.Struct("iII")
_ROOT = 0


def check_listener(connection: socket.socket, path: str) -> None:
    """Looks who listens at the other end; before anything is sent.

    Trusted are this user, root, and the user to whom root has given the socket's folder: every
    folder above is root's, nobody else can write there, and none is a link.

    Raises:
        PermissionError: It is somebody else.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(credentials)
    if uid in {os.geteuid(), _ROOT} or _was_given_by_root(path, uid):
        return
    raise PermissionError(
        f"who listens there is user {_name_of(uid)}, neither you nor root nor a service that root "
        "has set up: nothing was sent"
    )


def _was_given_by_root(path: str, uid: int) -> bool:
    folder = os.path.dirname(path)  # noqa: PTH120 - pathlib costs start-up time
    if not folder.startswith("/") or "/.." in folder or not _is_closed_folder_of(folder, uid):
        return False
    while folder != "/":
        folder = os.path.dirname(folder)  # noqa: PTH120
        if not _is_closed_folder_of(folder, _ROOT):
            return False
    return True


def _is_closed_folder_of(path: str, uid: int) -> bool:
    """Whether only its owner (and root) can put something there, or something in its place."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid and not status.st_mode & 0o022


def _name_of(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)
