"""The settings: TOML files, then the environment; later ones win, and names are the same in both.

Nothing here imports torch.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpushare._settings.config_files import files, read_table
from gpushare._settings.devices import (
    AUTO,
    CPU,
    CUDA,
    CUDA_PREFIX,
    device_of_socket,
    is_cpu,
    socket_name,
)
from gpushare._settings.quantities import parse_bytes, parse_seconds
from gpushare._settings.settings import OF_FILES, SETTINGS, Setting
from gpushare.errors import ConfigError

__all__ = [
    "Config",
    "daemon_args",
    "daemon_args_of_gpus",
    "daemon_path",
    "is_of_one_device",
    "load",
    "load_readable",
    "look_up",
    "own_socket_paths",
    "parse_bytes",
    "parse_seconds",
    "socket_folders",
    "socket_paths",
]

SYSTEM_FOLDER = "/run/gpushare"
_MOST_SHOWN = 200
"""Characters of a bad value that an error repeats."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a process. None, "" or 0 where nobody set one."""

    socket: str = ""
    """The coordinator's socket, instead of looking for one; "none": use no coordinator."""
    policy: str = ""
    """Whom a coordinator that this process starts serves next: one of ``settings.POLICIES``."""
    max_wait_seconds: float | None = None
    """The ceiling on waiting for a turn."""
    switch_loss: float | None = None
    """The part of the time that switching may cost, above 0 and at most 0.5."""
    memory_wait_seconds: float | None = None
    """How long an allocation waits for room before it is out of memory."""
    min_quantum_seconds: float | None = None
    """The shortest lease."""
    linger_seconds: float | None = None
    """How long the coordinator stays after its last job; infinite for ever."""
    arbiter: str = ""
    """Where the arbiter listens that gives rows to gangs over several hosts; "none" or "": none."""
    arbiter_token_file: str = ""
    """The file of the secret that the coordinator and its arbiter have in common."""
    lanes: str = ""
    """Whether jobs of one user share memory that is free between iterations: on or off. With off, a
    job shares none of its own, whatever its coordinator does."""
    transfer_budget_bytes_per_second: int | None = None
    """What may move while another job computes, and nobody waits for; 0 for no limit."""
    num_lanes: int = 0
    """How many jobs may run at the same time, as far as they fit. 0: the daemon's default,
    1; under ``pack`` the number of cores, and 16 on CUDA."""
    capacity_bytes: int = 0
    """The CPU's memory, for all jobs; of an unmanaged process, its own limit. 0: default."""
    cpu_reserve_bytes: int | None = None
    """How much of ``capacity_bytes`` no job gets, where a file has both. None: nothing."""
    cuda_capacity_bytes: int = 0
    """The same of a CUDA device. 0: all of it but ``cuda_reserve_bytes``."""
    cuda_reserve_bytes: int | None = None
    """How much of a CUDA device's capacity no job gets. None: the daemon's default, where no
    capacity is set."""
    host_budget_bytes: int = 0
    """The most bytes that may be spilled, in RAM and file. 0: the daemon's default."""
    host_ram_budget_bytes: int | None = None
    """Of these, in RAM before ``spill_dir`` is used."""
    spill_dir: str | None = None
    """The folder that spilled memory goes to; "" for RAM."""
    log_level: str = ""
    """debug, info, warn, error or off."""
    name: str = ""
    """The job's name; "" for its script's."""
    group: str = ""
    """Jobs that belong together."""
    priority: str = "normal"
    """guaranteed, interactive, normal or opportunistic."""
    weight: float = 1.0
    """The share inside a priority."""
    memory_limit_bytes: int = 0
    """Most device memory of this job. 0: no limit but the device."""
    deadline_seconds: float = 0.0
    """How long an iteration of this job may take, from when it wants a lease. 0: no deadline."""
    share_limit: float = 0.0
    """The most of the device's time that this job may have, 0.01 to 1. 0: no limit."""
    elastic_limits: bool = False
    """Whether both limits bind only while others want what is beyond them."""
    elastic_threads: bool = False
    """Whether fewer threads work on each operation while the job runs beside others on the CPU."""
    sm_share: float = 0.0
    """The part of a GPU's SMs that this process computes with under MPS, 0.01 to 1. 0: as MPS has
    it."""
    profile: str = ""
    """Under which name the coordinator remembers this job: "" for its model's, "off" for none."""
    device: str = AUTO
    """The device to share, as ``gpushare._settings.devices.parse_wish`` has it."""
    idle_spill_seconds: float | None = None
    """After so long without a lease, and none wanted, the job's memory may be spilled."""
    disable: bool = False
    """Run the program on stock torch, as if gpushare were not there."""
    lane_scrub: bool = False
    """Whether memory that the job shares is zeroed when its lease closes."""
    overflow: bool = False
    """Whether what is refused room is used in host memory, slowly, and not out of memory."""
    lane_strict: bool = False
    """Whether the job's access to memory that it shares is a fault while it has no lease."""
    passthrough: str = "auto"
    """Whether the job's CUDA memory is the runtime's own, which never moves. auto: where torch is
    told to give it to a network card or to other GPUs for good."""
    reachable: str = "auto"
    """Whether CUDA memory in the host tier can be used there, where the device can do that. auto:
    not while the main thread waits for a lease, when memory leaves and comes back faster so."""
    safepoints: bool = True
    """Whether an iteration may stop between two blocks of the model, for a job that cannot wait."""
    require: bool = False
    """Whether going on unmanaged is an error."""
    report: bool = True
    """Whether to print the two-line report at exit."""


def load(env: Mapping[str, str] | None = None) -> Config:
    """Reads all settings.

    Args:
        env: The environment; this process's unless given.

    Raises:
        ConfigError: A value is bad, or a file cannot be read.
    """
    settings, error = load_readable(env)
    if error is not None:
        raise error
    return settings


def load_readable(env: Mapping[str, str] | None = None) -> tuple[Config, ConfigError | None]:
    """Reads all settings; what is wrong in them counts as not set.

    Args:
        env: The environment; this process's unless given.

    Returns:
        The settings, and the first thing that is wrong.
    """
    env = os.environ if env is None else env
    values: dict[str, Any] = {}
    errors: list[ConfigError] = []
    for path, must_exist in files(env):
        try:
            table = read_table(path, must_exist=must_exist)
        except ConfigError as error:
            errors.append(error)
            continue
        for setting in (*SETTINGS, *OF_FILES):
            value = look_up(table, setting.key)
            if value is not None:
                _take(setting, value, f"{path}: {setting.key}", values, errors)
    for setting in SETTINGS:
        text = env.get(setting.variable)
        if text is not None and (text != "" or setting.may_be_empty):
            _take(setting, text, setting.variable, values, errors)
    if env.get("GPUSHARE_CAPACITY"):  # a file's reserve is of the capacity in the file
        values.pop("cpu_reserve_bytes", None)
        if not env.get("GPUSHARE_RESERVE"):
            values.pop("cuda_reserve_bytes", None)
    return Config(**values), errors[0] if errors else None


def socket_paths(config: Config, device_name: str = CPU) -> list[str]:
    """Returns a device's sockets to try, in order; a coordinator is started at the last one.

    Empty if the configuration says that no coordinator is to be used. A CUDA device may have its
    coordinator in common with others: that one's socket comes first, where there is one.

    Args:
        config: If it names a socket, that is the only one, whatever the device.
        device_name: "cpu", "cuda:" and a UUID, or "cuda" for the coordinator of several.
    """
    own = own_socket_paths(config, device_name)
    if config.socket or not device_name.startswith(CUDA_PREFIX):
        return own
    of_all = own_socket_paths(config, CUDA)
    return [path for path in of_all if _is_there(path)] + own


def own_socket_paths(config: Config, device_name: str) -> list[str]:
    """Returns the same as ``socket_paths``, without the coordinators of several devices."""
    if config.socket == "none":
        return []
    if config.socket:
        return [config.socket]
    systems, own = (f"{folder}/{socket_name(device_name)}" for folder in socket_folders())
    # The system's comes first where an administrator has set one up.
    return [*([systems] if _is_there(systems) else []), own]


def is_of_one_device(socket_path: str) -> bool:
    """Tells whether a socket has the name of one CUDA device, and so has its coordinator."""
    return device_of_socket(os.path.basename(socket_path)) not in {"", CUDA}  # noqa: PTH119


def _is_there(path: str) -> bool:
    """Whether a socket is there.

    A folder that this user may not enter counts as yes, so that the job says so instead of starting
    a coordinator of its own.
    """
    try:
        os.stat(path)  # noqa: PTH116 - pathlib costs start-up time
    except OSError as error:
        return error.errno == errno.EACCES
    return True


def socket_folders() -> tuple[str, str]:
    """Returns where coordinators listen: the system's, then this user's."""
    runtime = _runtime_folder()
    own = f"{runtime}/gpushare" if runtime else f"/tmp/gpushare-{os.geteuid()}"
    return SYSTEM_FOLDER, own


def daemon_path() -> str:
    """Returns the coordinator's program: the one in this package, else on PATH, else ""."""
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    own = os.path.join(package, "bin", "gpushared")  # noqa: PTH118
    return own if os.access(own, os.X_OK) else shutil.which("gpushared") or ""


def daemon_args(config: Config, device_name: str = CPU, device_bytes: int = 0) -> list[str]:
    """Returns the options with which this process would start a coordinator: those that are set.

    Args:
        config: The settings.
        device_name: "cpu", or "cuda:" and a UUID.
        device_bytes: The memory of a CUDA device, which the coordinator cannot find out.
    """
    arguments: list[str] = []
    if device_name != CPU:
        arguments += ["--device", device_name]
    if not is_cpu(device_name):
        if device_bytes:
            arguments += ["--device-memory", str(device_bytes)]
        return arguments + _args_of_cuda(config)
    if config.capacity_bytes and config.cpu_reserve_bytes is not None:
        arguments += ["--reserve", str(config.cpu_reserve_bytes)]
    return arguments + _args_of_settings(config)


def daemon_args_of_gpus(config: Config, gpus: Sequence[tuple[str, int]]) -> list[str]:
    """Returns the same for a coordinator of several CUDA devices.

    Args:
        config: The settings. A capacity is that of each device.
        gpus: Their names and their memory in bytes.
    """
    capacity = config.cuda_capacity_bytes
    if capacity and config.cuda_reserve_bytes is None:
        config = replace(config, cuda_reserve_bytes=0)  # a file's is of the capacity there
    parts = [f"{name}={min(capacity or size, size)}" for name, size in gpus]
    arguments = ["--devices", ",".join(parts)]
    if not capacity:
        arguments += ["--device-memory", str(max(size for _, size in gpus))]
    return arguments + _args_of_cuda(replace(config, cuda_capacity_bytes=0))


def _args_of_cuda(config: Config) -> list[str]:
    reserve = config.cuda_reserve_bytes
    arguments = [] if reserve is None else ["--reserve", str(reserve)]
    return arguments + _args_of_settings(replace(config, capacity_bytes=config.cuda_capacity_bytes))


def _args_of_settings(config: Config) -> list[str]:
    arguments: list[str] = []
    for setting in SETTINGS:
        value = getattr(config, setting.field)
        if setting.option and value != Config.__dataclass_fields__[setting.field].default:
            arguments += [setting.option, setting.spell(value)]
    return arguments


def look_up(table: dict[str, Any], key: str) -> Any:
    """Returns what a file says under a key like "device.cpu.capacity"; None for nothing."""
    found: Any = table
    for part in key.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(part)
    return found


def _take(
    setting: Setting, value: Any, where: str, values: dict[str, Any], errors: list[ConfigError]
) -> None:
    try:
        values[setting.field] = setting.parse(value)
    except (ValueError, TypeError, OverflowError) as error:
        shown = repr(value)
        if len(shown) > _MOST_SHOWN:
            shown = f"{shown[:_MOST_SHOWN]}... ({len(shown)} characters)"
        errors.append(ConfigError(f"{where}: bad value {shown}; {setting.refusal(error)}"))


def _runtime_folder() -> str:
    """$XDG_RUNTIME_DIR, if it is a folder of this user's; cron, Slurm and containers have none."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if not folder.startswith("/"):
        return ""
    try:
        status = os.lstat(folder)
    except OSError:
        return ""
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return folder.rstrip("/") if is_own else ""
