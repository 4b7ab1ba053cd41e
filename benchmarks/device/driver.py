"""Makes the driver's virtual memory calls by ctypes, as the product makes them.

This needs no build of gpushare. The time of a call includes the microsecond that ctypes needs.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

# csrc/vm/cuda/cuda_types.h has these too.
DEVICE = 1
HOST_NODE = 3
_PINNED = 1
_FILE_DESCRIPTOR = 1
_READ_WRITE = 3
_PORTABLE = 1
_NON_BLOCKING = 1
_NEAREST_HOST_NODE = 134
_HAS_HOST_NODE_MEMORY = 141


class DriverError(RuntimeError):
    """A call was refused."""


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Property(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class Driver:
    """Device 0, with its primary context current in the calling thread."""

    def __init__(self) -> None:
        """Starts CUDA in this process."""
        self._library = ctypes.CDLL("libcuda.so.1")
        self.seconds = 0.0
        """The duration of the last call."""
        self("cuInit", 0)
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)

    def __call__(self, name: str, *arguments: Any) -> float:
        """Makes a call; returns its seconds.

        Raises:
            DriverError: It was refused.
        """
        function = getattr(self._library, name)
        begun = time.perf_counter()
        code = function(*arguments)
        self.seconds = time.perf_counter() - begun
        if code != 0:
            raise DriverError(f"{name}: {self._text_of(code)}")
        return self.seconds

    def _text_of(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return (text.value or b"an unknown error").decode() + f" ({code})"

    def attribute(self, number: int) -> int | None:
        """Returns an attribute of the device, or None if the driver does not know it."""
        value = ctypes.c_int()
        if self._library.cuDeviceGetAttribute(ctypes.byref(value), number, 0) != 0:
            return None
        return value.value

    def host_node(self) -> int | None:
        """Returns the host tier's NUMA node, or None if the device cannot use host memory."""
        if not self.attribute(_HAS_HOST_NODE_MEMORY):
            return None
        nearest = self.attribute(_NEAREST_HOST_NODE)
        return 0 if nearest is None or nearest < 0 else nearest

    def reserve(self, num_bytes: int) -> int:
        """Reserves so many addresses; returns the first one."""
        address = ctypes.c_uint64()
        zero = ctypes.c_uint64(0)
        size = ctypes.c_size_t(num_bytes)
        self("cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(0), zero, zero)
        return address.value

    def free_addresses(self, address: int, num_bytes: int) -> float:
        """Gives reserved addresses back."""
        return self("cuMemAddressFree", ctypes.c_uint64(address), ctypes.c_size_t(num_bytes))

    def create(self, num_bytes: int, *, has_file: bool = True, host_node: int | None = None) -> int:
        """Returns a new handle of the device's memory, or of memory of a node of the host."""
        handle = ctypes.c_uint64()
        where = _Location(DEVICE, 0) if host_node is None else _Location(HOST_NODE, host_node)
        types = _FILE_DESCRIPTOR if has_file and host_node is None else 0
        what = _Property(_PINNED, types, where)
        size, zero = ctypes.c_size_t(num_bytes), ctypes.c_uint64(0)
        self("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(what), zero)
        return handle.value

    def map(self, address: int, num_bytes: int, handle: int) -> float:
        """Maps a whole handle."""
        zero = ctypes.c_uint64(0)
        at, size = ctypes.c_uint64(address), ctypes.c_size_t(num_bytes)
        return self("cuMemMap", at, size, ctypes.c_size_t(0), ctypes.c_uint64(handle), zero)

    def allow(self, address: int, num_bytes: int, host_node: int | None = None) -> float:
        """Lets the device use mapped memory, and the CPU too if a node is given."""
        places = [] if host_node is None else [_Location(HOST_NODE, host_node)]
        places.append(_Location(DEVICE, 0))
        access = (_Access * len(places))(*(_Access(place, _READ_WRITE) for place in places))
        at, size = ctypes.c_uint64(address), ctypes.c_size_t(num_bytes)
        return self("cuMemSetAccess", at, size, access, ctypes.c_size_t(len(places)))

    def unmap(self, address: int, num_bytes: int) -> float:
        """Unmaps whole handles."""
        return self("cuMemUnmap", ctypes.c_uint64(address), ctypes.c_size_t(num_bytes))

    def release(self, handle: int) -> float:
        """Gives a handle's memory back, once it is mapped nowhere."""
        return self("cuMemRelease", ctypes.c_uint64(handle))

    def register(self, address: int, num_bytes: int) -> float:
        """Pins memory of the process."""
        size = ctypes.c_size_t(num_bytes)
        return self("cuMemHostRegister_v2", ctypes.c_void_p(address), size, _PORTABLE)

    def unregister(self, address: int) -> float:
        """Unpins memory that was registered."""
        return self("cuMemHostUnregister", ctypes.c_void_p(address))

    def stream(self) -> ctypes.c_void_p:
        """Returns a new stream, which does not wait for the default one."""
        stream = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
        return stream

    def copy_out(self, host: int, device: int, num_bytes: int, stream: ctypes.c_void_p) -> None:
        """Copies from the device, and waits for it."""
        size = ctypes.c_size_t(num_bytes)
        at = ctypes.c_uint64(device)
        self("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(host), at, size, stream)
        self("cuStreamSynchronize", stream)

    def copy_in(self, device: int, host: int, num_bytes: int, stream: ctypes.c_void_p) -> None:
        """Copies to the device, and waits for it."""
        size = ctypes.c_size_t(num_bytes)
        at = ctypes.c_uint64(device)
        self("cuMemcpyHtoDAsync_v2", at, ctypes.c_void_p(host), size, stream)
        self("cuStreamSynchronize", stream)
