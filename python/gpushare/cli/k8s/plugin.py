"""The device plugin: what the kubelet asks, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import grpc

from gpushare.cli.k8s import api
from gpushare.cli.k8s.slots import SlotError, UnhealthyError, grant, preferred, slots_of
from gpushare.printable import printable

if TYPE_CHECKING:
    from gpushare.cli.k8s.devices import DeviceTable

_Context = Any
"""grpc.ServicerContext: the library has no types."""


class DevicePlugin:
    """Answers the kubelet from the table of devices."""

    def __init__(self, table: DeviceTable, folder: str, slots_per_device: int) -> None:
        """Serves nothing yet.

        Args:
            table: The devices.
            folder: Where the coordinators listen. Containers get it at the same path.
            slots_per_device: How many slots each device has.
        """
        self._table = table
        self._folder = folder
        self._slots_per_device = slots_per_device

    def handler(self) -> Any:
        """Returns the service for a server of ``grpc``."""
        functions: dict[str, Callable[..., Any]] = {
            "GetDevicePluginOptions": lambda _request, _context: options(),
            "ListAndWatch": self._list_and_watch,
            "GetPreferredAllocation": self._preferred,
            "Allocate": self._allocate,
            "PreStartContainer": lambda _request, _context: (
                api.messages.PreStartContainerResponse()
            ),
        }
        return api.handler("DevicePlugin", functions)

    def _list_and_watch(self, _request: Any, context: _Context) -> Iterator[Any]:
        """Yields all slots now, and again after each change, until the kubelet hangs up."""
        context.add_callback(self._table.wake)
        version = -1
        while True:
            version, devices = self._table.wait_newer(version, context.is_active)
            if not context.is_active():
                return
            yield api.messages.ListAndWatchResponse(
                devices=[
                    api.messages.Device(
                        ID=slot, health=api.HEALTHY if each.is_healthy else api.UNHEALTHY
                    )
                    for each in devices
                    for slot in slots_of(each.name, self._slots_per_device)
                ]
            )

    def _preferred(self, request: Any, _context: _Context) -> Any:
        given: set[str] = set()
        response = api.messages.PreferredAllocationResponse()
        for each in request.container_requests:
            free = set(each.available_deviceIDs) - given
            chosen = preferred(free, each.must_include_deviceIDs, each.allocation_size)
            given.update(chosen)
            response.container_responses.add(deviceIDs=chosen)
        return response

    def _allocate(self, request: Any, context: _Context) -> Any:
        response = api.messages.AllocateResponse()
        devices = self._table.devices()
        for each in request.container_requests:
            try:
                environment = grant(list(each.devices_ids), devices, self._slots_per_device)
            except UnhealthyError as error:
                context.abort(grpc.StatusCode.UNAVAILABLE, printable(str(error)))
            except SlotError as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, printable(str(error)))
            else:
                response.container_responses.append(self._container(environment))
        return response

    def _container(self, environment: dict[str, str]) -> Any:
        # The folder is read-only in the container. A process there may connect to a socket, but it
        # cannot replace the socket or start a coordinator of its own in the folder.
        mount = api.messages.Mount(
            container_path=self._folder, host_path=self._folder, read_only=True
        )
        return api.messages.ContainerAllocateResponse(envs=environment, mounts=[mount])


def options() -> Any:
    """Returns what the kubelet may call."""
    return api.messages.DevicePluginOptions(get_preferred_allocation_available=True)
