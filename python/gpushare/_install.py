"""Makes gpushare's allocator torch's.

Installation needs torch, and happens right after torch is loaded, whoever comes first. It does not
talk to the coordinator: that happens when the allocator backs its first memory. Only a process that
leaves open which of several GPUs it uses asks before (placement.py).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from gpushare import children
from gpushare._coordinator import host_sockets, placement
from gpushare._coordinator.required import exit_if_uncaught
from gpushare._native import (
    choose,
    cuda_index,
    device,
    is_forked_child,
    is_installed,
    load,
    note_installed,
    refuse_bad_settings,
    settings,
)
from gpushare._settings.config import (
    Config,
    daemon_args,
    daemon_args_of_gpus,
    daemon_path,
    socket_paths,
)
from gpushare._settings.devices import ANY, AUTO, CPU, CUDA, CUDA_PREFIX, is_cpu
from gpushare._torch import address_limit, captures, compiled, cuda, immovable, ipc, optimizer_steps
from gpushare.errors import GpushareError, say_once
from gpushare.version import __version__

_MAX_COMMAND_BYTES = 128
_CONNECT_TIMEOUT_SECONDS = 5.0
_IDLE_RULE_SECONDS = 2.0
_IDLE_SPILL_SECONDS = 10.0
_LONGEST_SECONDS = 1e9
DEFAULT_LOG_LEVEL = "warn"

_is_waiting = False
"""Torch has CUDA, which is to be shared, and has not started it yet."""


def start() -> None:
    """Installs now if torch is loaded, else when it will be. Later calls do nothing."""
    from gpushare._torch.torch_import import when_torch_is_loaded

    when_torch_is_loaded(_install_at_import)


def is_waiting_for_cuda() -> bool:
    """Tells whether gpushare comes in as soon as torch starts CUDA."""
    return _is_waiting and not is_installed()


def install(wish: str = "") -> None:
    """Makes our allocator torch's, for the rest of the process. Idempotent.

    Args:
        wish: The device to share, as ``devices.parse_wish`` has it; "" for that of the settings.

    Raises:
        ConfigError: A setting is wrong.
        GpushareError: The module does not fit this torch, this is a forked child and CUDA's, or
            the process shares another device already.
    """
    if is_forked_child() and device() != CPU:
        raise GpushareError(
            "a forked child of a job on CUDA cannot be a job: start it with spawn instead"
        )
    if is_installed():
        _refuse_other_device(wish)
        return
    refuse_bad_settings()
    before = settings()
    if is_forked_child():
        immovable.note_fork()
    if wish:
        choose(replace(before, device=wish))
        if is_cpu(wish):
            immovable.note_late_choice()
    try:
        _install_wanted(settings())
    except GpushareError:
        choose(before)
        raise


def _install_wanted(config: Config) -> None:
    if not cuda.is_wanted(config):
        _install(config)
        return
    cuda.limit_sms(config)
    if not _is_waiting:
        placement.place()
    cuda.start()  # installs, if that was not refused, or CUDA had been started before
    if not is_installed():
        _install_cuda()


def _refuse_other_device(wish: str) -> None:
    """A process shares one device, from when its allocator was installed."""
    on_cpu = device() == CPU
    numbered = f"{CUDA_PREFIX}{cuda_index()}"
    chosen = settings().device
    own = {CPU, chosen} if on_cpu else {CUDA, numbered, device()}
    if wish not in own | {"", AUTO, ANY}:
        shared = (chosen if is_cpu(chosen) else CPU) if on_cpu else f"{numbered} ({device()})"
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


def _install(config: Config, name: str = CPU, number: int = -1, device_bytes: int = 0) -> None:
    native = load()
    paths, arguments = _coordinator_of(config, name, device_bytes)
    # A kernel that is launched in the gap while a CUDA device's memory moves does not wait, as
    # writers on a CPU do: what it writes then may be lost.
    default_idle_spill = _IDLE_SPILL_SECONDS if name == CPU else _LONGEST_SECONDS
    native.install(
        socket_paths=paths,
        daemon_path=daemon_path(),
        daemon_args=arguments,
        command=_command(),
        program=children.program(),
        version=__version__,
        # Where a coordinator is required its absence is an error, and said by whoever meets it.
        log_level=config.log_level or ("error" if config.require else DEFAULT_LOG_LEVEL),
        connect_timeout_seconds=_CONNECT_TIMEOUT_SECONDS,
        idle_rule_seconds=_IDLE_RULE_SECONDS,
        idle_spill_seconds=min(config.idle_spill_seconds or default_idle_spill, _LONGEST_SECONDS),
        capacity_bytes=config.capacity_bytes if name == CPU else config.cuda_capacity_bytes,
        require=config.require,
        lane_scrub=config.lane_scrub and name == CPU,
        overflow=config.overflow,
        lane_strict=config.lane_strict and name == CPU,
        lanes=config.lanes != "off",
        device=config.device if name == CPU and is_cpu(config.device) else name,
        cuda_index=number,
        passthrough=name != CPU and cuda.is_passed_through(config),
        reachable=config.reachable != "off",
        reachable_in_gate=config.reachable != "auto" or not can_reach(number),
    )
    if name == CPU:
        _, range_bytes = native.reserved_range()
        address_limit.leave_out(2 * range_bytes)  # each address of ours is there twice
    note_installed(name, number, paths)


def _coordinator_of(config: Config, name: str, device_bytes: int) -> tuple[list[str], list[str]]:
    """Returns the sockets to try, and the options of the coordinator to start at the last one."""
    paths = socket_paths(config, name) if name == CPU else host_sockets.find_sockets(config, name)
    gpus = [] if name == CPU or not paths else host_sockets.several_gpus(config, paths[-1], name)
    if gpus:
        sizes = [(gpu.device, gpu.memory_bytes) for gpu in gpus]
        return paths, daemon_args_of_gpus(config, sizes)
    return paths, daemon_args(config, name, device_bytes)


def can_reach(number: int) -> bool:
    """Tells whether memory of this CUDA device can be used while it is in host memory."""
    return number >= 0 and bool(load().cuda_device_info(number)["can_reach_spilled"])


def _install_at_import() -> None:
    """What happens when torch has been loaded: install, unless this process is only a worker."""
    if settings().disable or is_installed() or is_forked_child():
        return
    children.program()  # this process may start others before it uses its device
    if children.is_child():
        children.when_training_begins(_install_now)
    else:
        _install_now()


def install_in_child() -> None:
    """Installs in a forked child that is about to train; what goes wrong is said once."""
    with _errors_said():
        install()


def _install_now() -> None:
    global _is_waiting
    if _is_waiting:
        return
    compiled.watch_compile()
    optimizer_steps.watch_steps()
    with _errors_said():
        refuse_bad_settings()
        if cuda.is_wanted(settings()):
            load()  # says what is wrong with the build while that can still be heard
            cuda.limit_sms(settings())
            placement.place()
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


def _command() -> str:
    """What this process runs, for status: the command line without the interpreter's folder."""
    words = [os.path.basename(sys.executable or "python"), *sys.orig_argv[1:]]  # noqa: PTH119
    text = " ".join("".join(c if c.isprintable() else " " for c in word) for word in words)
    return text.encode()[:_MAX_COMMAND_BYTES].decode(errors="ignore")
