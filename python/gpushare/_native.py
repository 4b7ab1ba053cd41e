"""Loads the compiled module, explains a failed load, and makes its allocator torch's.

Installation needs torch, and happens right after torch is loaded, whoever comes first. It does not
talk to the coordinator: that happens when the allocator backs its first memory.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from gpushare import captures, children, compiled, cuda, immovable, ipc, optimizer_steps
from gpushare.config import Config, daemon_args, daemon_path, load_readable, socket_paths
from gpushare.devices import AUTO, CPU, CUDA, CUDA_PREFIX
from gpushare.errors import ConfigError, GpushareError, say_once
from gpushare.identity import REINSTALL
from gpushare.required import exit_if_uncaught
from gpushare.version import __version__

_MAX_COMMAND_BYTES = 128
_CONNECT_TIMEOUT_SECONDS = 5.0
_IDLE_RULE_SECONDS = 2.0
_IDLE_SPILL_SECONDS = 10.0
_LONGEST_SECONDS = 1e9
DEFAULT_LOG_LEVEL = "warn"

_config: Config | None = None
_config_error: ConfigError | None = None
"""Something in the settings is wrong: this process goes on as if it had no coordinator."""
_device = CPU
_cuda_index = -1
_is_waiting = False
"""Torch has CUDA, which is to be shared, and has not started it yet."""
_owner_pid = 0
"""The process that installed; a forked child inherits the allocator and is no job."""


def start() -> None:
    """Installs now if torch is loaded, else when it will be. Later calls do nothing."""
    from gpushare.torch_import import when_torch_is_loaded

    when_torch_is_loaded(_install_at_import)


def settings() -> Config:
    """Returns the settings of this process, read once; what is wrong in them counts as not set."""
    global _config, _config_error
    if _config is None:
        _config, _config_error = load_readable()
    return _config


def load() -> ModuleType:
    """Returns the compiled module; torch is imported if it is not yet.

    Raises:
        GpushareError: It cannot be loaded; the text says why and what helps.
    """
    native = sys.modules.get("gpushare._C")
    if native is not None:
        return native
    import torch  # noqa: F401 - brings libc10, which the module is linked with

    _check_torch()
    try:
        from gpushare import _C
    except ImportError as error:
        raise GpushareError(_explain_failed_load(error)) from error
    return sys.modules[_C.__name__]


def is_installed() -> bool:
    """Tells whether gpushare's allocator makes this process's CPU tensors."""
    native = sys.modules.get("gpushare._C")
    return native is not None and bool(native.is_installed()) and not is_forked_child()


def is_waiting_for_cuda() -> bool:
    """Tells whether gpushare comes in as soon as torch starts CUDA."""
    return _is_waiting and not is_installed()


def is_forked_child() -> bool:
    """Tells whether this process was forked from one that had installed."""
    return _owner_pid not in (0, os.getpid())


def install(wish: str = "") -> None:
    """Makes our allocator torch's, for the rest of the process. Idempotent.

    Args:
        wish: The device to share, as ``devices.parse_wish`` has it; "" for that of the settings.

    Raises:
        ConfigError: A setting is wrong.
        GpushareError: The module does not fit this torch, this is a forked child, or the process
            shares another device already.
    """
    global _config
    if is_forked_child():
        raise GpushareError("a forked child of a job cannot be a job: start it with spawn instead")
    if is_installed():
        _refuse_other_device(wish)
        return
    _refuse_bad_settings()
    before = settings()
    if wish:
        _config = replace(before, device=wish)
        if wish == CPU:
            immovable.note_late_choice()
    try:
        _install_wanted(settings())
    except GpushareError:
        _config = before
        raise


def _refuse_bad_settings() -> None:
    settings()
    if _config_error is not None:
        raise _config_error


def _install_wanted(config: Config) -> None:
    if not cuda.is_wanted(config):
        _install(config)
        return
    cuda.limit_sms(config)
    cuda.start()  # installs, if that was not refused, or CUDA had been started before
    if not is_installed():
        _install_cuda()


def _refuse_other_device(wish: str) -> None:
    """A process shares one device, from when its allocator was installed."""
    is_cpu = _device == CPU
    own = {"", AUTO, CPU} if is_cpu else {"", AUTO, CUDA, f"{CUDA_PREFIX}{_cuda_index}", _device}
    if wish not in own:
        shared = _device if is_cpu else f"{CUDA_PREFIX}{_cuda_index} ({_device})"
        raise GpushareError(
            f'register was asked for device "{wish}", and this process shares {shared} already. '
            f"GPUSHARE_DEVICE={wish} in its environment chooses the other one"
        )


def _install_cuda() -> None:
    """Supplies torch's CUDA segments from now on. CUDA is started, and nothing allocated yet."""
    if is_installed() or is_forked_child():
        return
    config = settings()
    native = load()
    number = cuda.index(config)
    cuda.prepare()
    info = native.cuda_device_info(number)
    _install(config, CUDA_PREFIX + info["uuid"], number, info["total_bytes"])
    cuda.say_without_effect(
        config, can_reach=info["can_reach_spilled"] and config.reachable != "off"
    )
    captures.watch(native)
    ipc.watch(native)


def _install(
    config: Config, device: str = CPU, cuda_index: int = -1, device_bytes: int = 0
) -> None:
    global _owner_pid, _device, _cuda_index
    native = load()
    # A kernel that is launched in the gap while a CUDA device's memory moves does not wait, as
    # writers on a CPU do: what it writes then may be lost.
    default_idle_spill = _IDLE_SPILL_SECONDS if device == CPU else _LONGEST_SECONDS
    native.install(
        socket_paths=socket_paths(config, device),
        daemon_path=daemon_path(),
        daemon_args=daemon_args(config, device, device_bytes),
        command=_command(),
        version=__version__,
        # Where a coordinator is required its absence is an error, and said by whoever meets it.
        log_level=config.log_level or ("error" if config.require else DEFAULT_LOG_LEVEL),
        connect_timeout_seconds=_CONNECT_TIMEOUT_SECONDS,
        idle_rule_seconds=_IDLE_RULE_SECONDS,
        idle_spill_seconds=min(config.idle_spill_seconds or default_idle_spill, _LONGEST_SECONDS),
        capacity_bytes=config.capacity_bytes if device == CPU else config.cuda_capacity_bytes,
        require=config.require,
        lane_scrub=config.lane_scrub and device == CPU,
        overflow=config.overflow,
        lane_strict=config.lane_strict and device == CPU,
        lanes=config.lanes != "off",
        device=device,
        cuda_index=cuda_index,
        passthrough=device != CPU and _takes_real_memory(config),
        reachable=config.reachable != "off",
        reachable_in_gate=config.reachable != "auto" or not _can_reach(cuda_index),
    )
    _owner_pid = os.getpid()
    _device = device
    _cuda_index = cuda_index


def _can_reach(cuda_index: int) -> bool:
    return cuda_index >= 0 and bool(load().cuda_device_info(cuda_index)["can_reach_spilled"])


def _takes_real_memory(config: Config) -> bool:
    from gpushare import cuda

    return cuda.is_passed_through(config)


def device() -> str:
    """Returns the name of the device that this process shares."""
    return _device


def cuda_index() -> int:
    """Returns torch's number of the CUDA device that this process shares, below 0 if it is none."""
    return _cuda_index


def _install_at_import() -> None:
    """What happens when torch has been loaded: install, unless this process is only a worker."""
    if settings().disable or is_installed() or is_forked_child():
        return
    if children.is_child():
        children.when_module_is_made(_install_now)
    else:
        _install_now()


def _install_now() -> None:
    global _is_waiting
    compiled.watch_compile()
    optimizer_steps.watch_steps()
    with _errors_said():
        _refuse_bad_settings()
        if cuda.is_wanted(settings()):
            load()  # says what is wrong with the build while that can still be heard
            cuda.limit_sms(settings())
            _is_waiting = True
            cuda.when_started(_install_cuda_when_started)
        else:
            install()


def _install_cuda_when_started() -> None:
    global _is_waiting
    _is_waiting = False
    # torch turns what comes out of here into an error of its own.
    with _errors_said():
        _install_cuda()


@contextlib.contextmanager
def _errors_said() -> Iterator[None]:
    """What goes wrong at installation is said once; where a coordinator is required it is fatal."""
    try:
        yield
    except GpushareError as error:
        if settings().require:
            exit_if_uncaught(error)
            raise
        # As register() says it, so once.
        say_once(f"{error}. Training goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal")


def _check_torch() -> None:
    """Before the module is loaded: a loader's words on another torch are of symbols."""
    import torch

    try:
        from gpushare import _built
    except ImportError:
        return  # no build is here, or an unusual one; loading shows it
    found = ".".join(torch.__version__.split(".")[:2])
    if found != _built.TORCH:
        raise GpushareError(
            f"built for torch {_built.TORCH}, found {found}. Have that torch here (pip install "
            f'"torch=={_built.TORCH}.*") or build for this one (in gpushare\'s sources {REINSTALL})'
        )


def _explain_failed_load(error: ImportError) -> str:
    from gpushare.identity import WRONG_PACKAGE, is_stranger_installed

    if is_stranger_installed():
        return WRONG_PACKAGE
    folder = Path(__file__).parent
    built = sorted(path.name for path in folder.glob("_C*.so"))
    wanted = f"_C.{sys.implementation.cache_tag}"
    if not built:
        return f"the compiled module is not in {folder}; in gpushare's sources {REINSTALL}"
    if not any(name.startswith((wanted, "_C.abi3")) for name in built):
        return f"the compiled module is for another Python: found {', '.join(built)}, want {wanted}"
    return f"the compiled module in {folder} does not load: {error}"


def _command() -> str:
    """What this process runs, for status: the command line without the interpreter's folder."""
    words = [os.path.basename(sys.executable or "python"), *sys.orig_argv[1:]]  # noqa: PTH119
    text = " ".join("".join(c if c.isprintable() else " " for c in word) for word in words)
    return text.encode()[:_MAX_COMMAND_BYTES].decode(errors="ignore")
