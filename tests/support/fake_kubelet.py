"""A kubelet as far as device plugins see one: it takes registrations and calls plugins."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from gpushare.cli.k8s import api

PATIENCE_SECONDS = 30.0


class FakeKubelet:
    """A server at ``kubelet.sock`` of a folder, and calls of the plugin that registers."""

    def __init__(
        self, folder: Path, refuses: grpc.StatusCode | None = None, *, hangs: bool = False
    ) -> None:
        """Clears the folder as a kubelet that starts does, and listens.

        A kubelet that hangs answers no registration until it is stopped.
        """
        for path in folder.iterdir():
            path.unlink()
        self._folder = folder
        self._refuses = refuses
        self._may_answer = threading.Event()
        if not hangs:
            self._may_answer.set()
        self._registrations: queue.Queue[Any] = queue.Queue()
        self._server = grpc.server(ThreadPoolExecutor(4))
        functions = {"Register": self._register}
        self._server.add_generic_rpc_handlers((api.handler("Registration", functions),))
        self._server.add_insecure_port(f"unix:{folder}/kubelet.sock")
        self._server.start()
        self._channel: Any = None

    def _register(self, request: Any, context: Any) -> Any:
        self._registrations.put(request)
        self._may_answer.wait()
        if self._refuses is not None:
            context.abort(self._refuses, "no such plugin here")
        return api.messages.Empty()

    def registration(self) -> Any:
        """The next one; the plugin is called at the socket that it names."""
        request = self._registrations.get(timeout=PATIENCE_SECONDS)
        self._hang_up()
        self._channel = grpc.insecure_channel(f"unix:{self._folder}/{request.endpoint}")
        return request

    def call(self, method: str, request: Any) -> Any:
        """What the plugin answers."""
        return api.call(self._channel, "DevicePlugin", method)(request, timeout=PATIENCE_SECONDS)

    def watch(self) -> Any:
        """The stream of its lists of slots."""
        watch = api.call(self._channel, "DevicePlugin", "ListAndWatch")
        return watch(api.messages.Empty(), timeout=PATIENCE_SECONDS)

    def allocate(self, *containers: list[str]) -> list[Any]:
        """What each container with these slots gets."""
        requests = [api.messages.ContainerAllocateRequest(devices_ids=each) for each in containers]
        request = api.messages.AllocateRequest(container_requests=requests)
        return list(self.call("Allocate", request).container_responses)

    def _hang_up(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def stop(self) -> None:
        """Ends it; its socket stays, as that of a killed one does."""
        self._hang_up()
        self._may_answer.set()
        self._server.stop(grace=None).wait()


def health(response: Any) -> dict[str, str]:
    """Slot -> its health, of one list."""
    return {each.ID: each.health for each in response.devices}


def next_with(stream: Any, expected: dict[str, str]) -> None:
    """Reads lists until one is as expected; the stream ends by its time-out."""
    for response in stream:
        if health(response) == expected:
            return
    raise AssertionError("the stream ended")
