"""Serves the device plugin, and registers it again whenever the kubelet starts anew.

A kubelet that starts removes the sockets of all plugins and makes its own anew. So the server looks
at both sockets in each turn. When the kubelet's socket is another one, or the plugin's socket is
gone, the server listens and registers again.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from gpushare.cli.k8s import api
from gpushare.cli.k8s.devices import DeviceTable, Scout, say
from gpushare.cli.k8s.plugin import DevicePlugin, options
from gpushare.errors import GpushareError

KUBELET_SOCKET = "kubelet.sock"
OWN_SOCKET = "gpushare.sock"
_PATIENCE_SECONDS = 5.0
_THREADS = 8
"""The kubelet has one stream open, and calls one method at a time."""
_TRY_AGAIN = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
"""What a call ends with while the kubelet starts, or while no kubelet listens."""


@dataclass(frozen=True, kw_only=True)
class PluginOptions:
    """The options of the device plugin."""

    kubelet_folder: str
    """Where the kubelet's socket is, and the plugin's will be."""
    folder: str
    """Where the coordinators listen."""
    resource: str
    slots_per_device: int
    turn_seconds: float = 1.0
    """Between two looks at the coordinators and at the sockets."""


class PluginServer:
    """Keeps the table of devices, the server and the registration up to date, in turns."""

    def __init__(self, options: PluginOptions) -> None:
        """Serves nothing yet.

        Args:
            options: Those of the command line.
        """
        self._options = options
        self._folder = Path(options.kubelet_folder)
        self._table = DeviceTable()
        self._scout = Scout(options.folder)
        self._server: Any = None
        self._registered_with: tuple[int, int] | None = None
        self._own: tuple[int, int] | None = None
        self._said = ""

    def run(self, stop: threading.Event) -> None:
        """Serves until it is told to stop.

        Args:
            stop: Says when.

        Raises:
            GpushareError: The kubelet refuses the plugin, another plugin serves at its socket, or
                the system does not let it listen there.
        """
        try:
            while not stop.is_set():
                self._table.update(self._scout.look())
                self._follow_kubelet()
                stop.wait(self._options.turn_seconds)
        finally:
            self._stop_server()

    def _follow_kubelet(self) -> None:
        kubelet = _identity(self._folder / KUBELET_SOCKET)
        if kubelet is None:
            self._registered_with = None
            self._say_once(f"waits for the kubelet: there is no {self._folder / KUBELET_SOCKET}")
            return
        own = _identity(self._folder / OWN_SOCKET)
        if self._registered_with == kubelet and own is not None and own == self._own:
            return
        self._stop_server()
        self._start_server()
        if self._register():
            self._registered_with = kubelet
            self._say_once(f"registered {self._options.resource} with the kubelet")

    def _start_server(self) -> None:
        path = self._folder / OWN_SOCKET
        if _identity(path) is not None:
            if _is_served(path):
                raise GpushareError(f"another device plugin of gpushare serves at {path}")
            path.unlink(missing_ok=True)  # of a plugin that has ended
        server = grpc.server(ThreadPoolExecutor(_THREADS))
        plugin = DevicePlugin(self._table, self._options.folder, self._options.slots_per_device)
        server.add_generic_rpc_handlers((plugin.handler(),))
        mask = os.umask(0o077)
        try:
            server.add_insecure_port(f"unix:{path}")
        except RuntimeError as error:  # grpc does not say why
            raise GpushareError(
                f"cannot listen at {path}: the folder is not writable, the path is longer than "
                "107 bytes, or a file that is no socket is there"
            ) from error
        finally:
            os.umask(mask)
        server.start()
        self._server = server
        self._own = _identity(path)

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop(grace=None).wait()
            self._server = None

    def _register(self) -> bool:
        """Whether the kubelet has taken it; false where the kubelet is not ready."""
        request = api.messages.RegisterRequest(
            version=api.VERSION,
            endpoint=OWN_SOCKET,
            resource_name=self._options.resource,
            options=options(),
        )
        with grpc.insecure_channel(f"unix:{self._folder / KUBELET_SOCKET}") as channel:
            register = api.call(channel, "Registration", "Register")
            try:
                register(request, timeout=_PATIENCE_SECONDS)
            except grpc.RpcError as error:
                text = f"{error.code().name}: {error.details()}"
                if error.code() not in _TRY_AGAIN:
                    raise GpushareError(
                        f"the kubelet refuses {self._options.resource} ({text})"
                    ) from error
                self._say_once(f"the kubelet is not ready ({error.code().name})")
                return False
        return True

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            say(text)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which socket this is; None if there is none."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    # A file system may give a new file the number of the old one, so the time counts too.
    return (status.st_ino, status.st_ctime_ns) if stat.S_ISSOCK(status.st_mode) else None


def _is_served(path: Path) -> bool:
    """Whether a process listens at this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PATIENCE_SECONDS)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False  # a kubelet that starts removes it at any moment
        except TimeoutError:
            return True  # its queue is full
    return True
