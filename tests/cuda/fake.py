"""The fake CUDA device for Python: the environment of a process that runs on it, and its controls.

The parent of a test needs neither the device nor torch. It starts children with `environment(...)`,
which preloads the fake, and a child calls `install_ops()` after `import torch`::

    env = fake.environment(capacity_bytes=64 << 20, device_file=tmp_path / "device")
    subprocess.run([sys.executable, "-c", PROGRAM], env=env, check=True)

Processes with the same `device_file` share one device.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def folder() -> Path:
    """Where the libraries are: FAKECUDA_LIBRARIES, or where tools/test_cuda.sh builds them."""
    return Path(os.environ.get("FAKECUDA_LIBRARIES", ROOT / "build" / "cuda" / "fakecuda"))


def package() -> Path:
    """Where gpushare is that was built for the CUDA torch."""
    return Path(os.environ.get("GPUSHARE_PACKAGE", ROOT / "build" / "cuda" / "python"))


def environment(
    *,
    capacity_bytes: int = 1 << 30,
    device_file: str | os.PathLike[str] | None = None,
    late: bool = False,
    num_devices: int = 1,
    context_bytes: int = 0,
    fail: str = "",
    **more: str,
) -> dict[str, str]:
    """The whole environment of a process on the fake device; `more` are variables of the caller's.

    `fail` is "function:nth:error,...": see fakecuda.h.
    """
    libraries = [folder() / "libcuda.so.1", folder() / "libnvidia-ml.so.1"]
    for library in libraries:
        if not library.exists():
            raise FileNotFoundError(f"{library}: `make test-cuda` builds it")
    env = dict(os.environ)
    env["LD_PRELOAD"] = " ".join(map(str, libraries))
    env["FAKECUDA_LIBRARIES"] = str(folder())
    env["FAKECUDA_CAPACITY"] = str(capacity_bytes)
    env["FAKECUDA_DEVICES"] = str(num_devices)
    env["FAKECUDA_CONTEXT_BYTES"] = str(context_bytes)
    env["FAKECUDA_LATE"] = "1" if late else "0"
    env["FAKECUDA_FAIL"] = fail
    env["FAKECUDA_DEVICE_FILE"] = "" if device_file is None else os.fspath(device_file)
    env["GPUSHARE_PACKAGE"] = str(package())
    # The fake driver and its libraries take nothing beside jobs.
    env["GPUSHARE_RESERVE"] = "0"
    env["OMP_NUM_THREADS"] = "1"
    # Sums in the same order wherever the operands lie: the CPU's are not where the device's are.
    env["MKL_CBWR"] = "COMPATIBLE"
    paths = [str(package()), str(ROOT), os.environ.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    env.update(more)
    return env


def install_ops() -> None:
    """In the child, after `import torch`: operators run, and as on the CPU, bit for bit."""
    import torch

    library = ctypes.CDLL(str(folder() / "libfakecuda_ops.so"))
    if library.fakecuda_install_ops() == 0:
        raise RuntimeError("no operator was installed on the fake device")
    # What has other algorithms on the two devices.
    torch.backends.cudnn.enabled = False
    torch.backends.mkldnn.enabled = False
    torch.backends.nnpack.set_flags(False)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(folder() / "libcuda.so.1"))
    library.fakecuda_used.restype = ctypes.c_uint64
    library.fakecuda_used_by.restype = ctypes.c_uint64
    library.fakecuda_calls.restype = ctypes.c_long
    library.fakecuda_fail.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
    return library


def used_bytes(device: int = 0) -> int:
    """Bytes taken on the device by all processes."""
    return _library().fakecuda_used(device)


def used_bytes_by(pid: int, device: int = 0) -> int:
    """Bytes that one process holds."""
    return _library().fakecuda_used_by(device, pid)


def fail(function: str, nth: int, error: int) -> None:
    """The n-th call from now of this function fails; 0 takes it back."""
    _library().fakecuda_fail(function.encode(), nth, error)


def num_calls(function: str) -> int:
    """How often it was called since the start, or since reset_calls()."""
    return _library().fakecuda_calls(function.encode())


def reset_calls() -> None:
    """Counts from zero again."""
    _library().fakecuda_reset_calls()


def free_under_torch(address: int) -> None:
    """Frees what torch still holds, as only a bug would: cudaFree behind its back."""
    if _library().cudaFree(ctypes.c_void_p(address)) != 0:
        raise ValueError(f"{address:#x} is not the start of an allocation")


def set_late(is_late: bool) -> None:
    """Late completion on or off: see tests/fakecuda/work.h."""
    _library().fakecuda_set_late(int(is_late))


def num_pending() -> int:
    """How many copies and kernels are not known to be complete."""
    return _library().fakecuda_num_pending()


def violations() -> list[str]:
    """The illegal accesses so far."""
    text = ctypes.create_string_buffer(1 << 20)
    _library().fakecuda_violations(text, len(text))
    return text.value.decode().splitlines()


def clear_violations() -> None:
    """Forgets them."""
    _library().fakecuda_clear_violations()
