"""The kubelet's device plugin API v1beta1: its messages and services, built when they are needed.

The public API is ``k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1``. The table below has its messages
as its ``.proto`` file has them. In each message the fields are numbered from 1 in this order, so no
code has to be generated.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

VERSION = "v1beta1"
HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"

_MESSAGES = {
    "Empty": (),
    "DevicePluginOptions": ("bool pre_start_required", "bool get_preferred_allocation_available"),
    "RegisterRequest": (
        "string version",
        "string endpoint",
        "string resource_name",
        "DevicePluginOptions options",
    ),
    "ListAndWatchResponse": ("repeated Device devices",),
    "NUMANode": ("int64 ID",),
    "TopologyInfo": ("repeated NUMANode nodes",),
    "Device": ("string ID", "string health", "TopologyInfo topology"),
    "PreStartContainerRequest": ("repeated string devices_ids",),
    "PreStartContainerResponse": (),
    "ContainerPreferredAllocationRequest": (
        "repeated string available_deviceIDs",
        "repeated string must_include_deviceIDs",
        "int32 allocation_size",
    ),
    "PreferredAllocationRequest": (
        "repeated ContainerPreferredAllocationRequest container_requests",
    ),
    "ContainerPreferredAllocationResponse": ("repeated string deviceIDs",),
    "PreferredAllocationResponse": (
        "repeated ContainerPreferredAllocationResponse container_responses",
    ),
    "ContainerAllocateRequest": ("repeated string devices_ids",),
    "AllocateRequest": ("repeated ContainerAllocateRequest container_requests",),
    "Mount": ("string container_path", "string host_path", "bool read_only"),
    "DeviceSpec": ("string container_path", "string host_path", "string permissions"),
    "CDIDevice": ("string name",),
    "ContainerAllocateResponse": (
        "map envs",
        "repeated Mount mounts",
        "repeated DeviceSpec devices",
        "map annotations",
        "repeated CDIDevice cdi_devices",
    ),
    "AllocateResponse": ("repeated ContainerAllocateResponse container_responses",),
}
"""Message -> its fields. A ``map`` is one of strings to strings."""

METHODS = {
    "DevicePlugin": {
        "GetDevicePluginOptions": ("Empty", "DevicePluginOptions"),
        "ListAndWatch": ("Empty", "ListAndWatchResponse"),
        "GetPreferredAllocation": ("PreferredAllocationRequest", "PreferredAllocationResponse"),
        "Allocate": ("AllocateRequest", "AllocateResponse"),
        "PreStartContainer": ("PreStartContainerRequest", "PreStartContainerResponse"),
    },
    "Registration": {"Register": ("RegisterRequest", "Empty")},
}
"""Service -> its methods: what each takes and gives. ``ListAndWatch`` gives a stream."""

STREAMS = frozenset({"ListAndWatch"})

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
}


def _build() -> SimpleNamespace:
    file = descriptor_pb2.FileDescriptorProto(
        name="gpushare/deviceplugin.proto", package=VERSION, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, text in enumerate(fields, 1):
            _add_field(message, number, text.split())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return SimpleNamespace(
        **{
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{VERSION}.{name}"))
            for name in _MESSAGES
        }
    )


def _add_field(message: Any, number: int, words: list[str]) -> None:
    kind, name = words[-2:]
    is_many = words[0] in {"repeated", "map"}
    field = message.field.add(
        name=name,
        number=number,
        label=_Field.LABEL_REPEATED if is_many else _Field.LABEL_OPTIONAL,
    )
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = _Field.TYPE_MESSAGE
    field.type_name = f".{VERSION}.{kind}"
    if kind == "map":
        # On the wire a map is a list of pairs, whose type is named after the field.
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(entry, 1, ["string", "key"])
        _add_field(entry, 2, ["string", "value"])
        field.type_name = f".{VERSION}.{message.name}.{entry.name}"


messages = _build()
"""Each message's class, by its name."""


def path_of(service: str, method: str) -> str:
    """Returns how gRPC names a method."""
    return f"/{VERSION}.{service}/{method}"


def call(channel: Any, service: str, method: str) -> Callable[..., Any]:
    """Returns a function that sends a message to the other side and returns its answer.

    Args:
        channel: The connection, of ``grpc``.
        service: One of ``METHODS``.
        method: One of the service's.
    """
    taken, given = METHODS[service][method]
    make = channel.unary_stream if method in STREAMS else channel.unary_unary
    made: Callable[..., Any] = make(
        path_of(service, method),
        request_serializer=getattr(messages, taken).SerializeToString,
        response_deserializer=getattr(messages, given).FromString,
    )
    return made


def handler(service: str, functions: dict[str, Callable[..., Any]]) -> Any:
    """Returns a service for a server of ``grpc``.

    Args:
        service: One of ``METHODS``.
        functions: Answers each of its methods. Each takes a message and the call's context.
    """
    made = {}
    for method, (taken, given) in METHODS[service].items():
        make = (
            grpc.unary_stream_rpc_method_handler
            if method in STREAMS
            else grpc.unary_unary_rpc_method_handler
        )
        made[method] = make(
            functions[method],
            request_deserializer=getattr(messages, taken).FromString,
            response_serializer=getattr(messages, given).SerializeToString,
        )
    return grpc.method_handlers_generic_handler(f"{VERSION}.{service}", made)
