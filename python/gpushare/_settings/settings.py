"""The table of settings: one row each, so that files, environment and options share their names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from gpushare._settings.devices import WISHES, parse_wish
from gpushare._settings.quantities import MissingUnitError, parse_bytes, parse_number, parse_seconds

LEAST_SHARE = 0.01
POLICIES = (
    "fair", "rr", "fifo", "srtf", "priority", "deadline", "pack", "srtf+pack", "deadline+pack",
)  # fmt: skip
PRIORITIES = ("guaranteed", "interactive", "normal", "opportunistic")
AUTO_ON_OFF = ("auto", "on", "off")
LOG_LEVELS = ("debug", "info", "warn", "error", "off")
MAX_NAME_BYTES = 128
"""Names go into messages, which are bounded (``csrc/wire/messages.h``)."""
MAX_SOCKET_PATH_BYTES = 100


class Setting(NamedTuple):
    """One setting and the names it has."""

    field: str
    """The attribute of ``Config``."""
    key: str
    """In a file: table and key."""
    variable: str
    """In the environment; "" where it has none."""
    parse: Callable[[Any], Any]
    """Text or TOML value to the value; raises ValueError or TypeError."""
    allowed: str
    """What it may be, for error texts."""
    option: str = ""
    """The daemon's option, where it has one."""
    spell: Callable[[Any], str] = str
    """The value as the daemon's option takes it."""
    may_be_empty: bool = False
    """Whether "" is a value; otherwise an empty variable counts as unset."""
    message: str = ""
    """Its name in messages to the coordinator (``csrc/wire/codec_fields.h``), where it is said."""

    @property
    def argument(self) -> str:
        """The keyword of ``register``, of a setting that is one: "deadline" of "job.deadline"."""
        return self.key.rpartition(".")[2]

    def refusal(self, error: Exception) -> str:
        """Returns what to write instead of a value that ``parse`` refused.

        Args:
            error: What ``parse`` raised.
        """
        return str(error) if isinstance(error, MissingUnitError) else f"allowed: {self.allowed}"


def parse_choice(*choices: str) -> Callable[[Any], str]:
    """Returns a parser that takes exactly these words."""

    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(value)
        return str(value)

    return parse


def parse_name(value: Any) -> str:
    """Returns a job's or group's name.

    Raises:
        ValueError: It is no printable text, or too long.
    """
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(value)
    if len(value.encode()) > MAX_NAME_BYTES:
        raise ValueError(value)
    return value


def parse_job_name(value: Any) -> str:
    """Returns a job's name, by which commands can find it.

    Raises:
        ValueError: It is no name, or a number: commands would take it for a job's number.
    """
    name = parse_name(value)
    if name.isdecimal():
        raise ValueError(value)
    return name


def parse_weight(value: Any) -> float:
    """Returns a weight.

    Raises:
        ValueError: It is not a finite number above 0.
    """
    number = _number(value)
    if number <= 0:
        raise ValueError(value)
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    return parse_number(value)


def _bytes(least: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool | float):
            raise TypeError(value)
        size = parse_bytes(value)
        if size < least:
            raise ValueError(value)
        return size

    return parse


def _seconds(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    return parse_seconds(value)


def _positive_seconds(value: Any) -> float:
    seconds = _seconds(value)
    if seconds <= 0:
        raise ValueError(value)
    return seconds


def _deadline(value: Any) -> float:
    seconds = _seconds(value)
    if seconds > _MOST_DEADLINE_SECONDS:
        raise ValueError(value)
    return seconds


def _share(value: Any) -> float:
    share = _number(value)
    if share and not LEAST_SHARE <= share <= 1:
        raise ValueError(value)
    return share


def _idle_spill(value: Any) -> float:
    return math.inf if value == "never" else _positive_seconds(value)


def _linger(value: Any) -> float:
    return math.inf if value == "never" else _seconds(value)


def _loss(value: Any) -> float:
    loss = _number(value)
    if not 0 < loss <= 0.5:
        raise ValueError(value)
    return loss


def _transfer_budget(value: Any) -> int:
    size = _bytes(0)(value)
    if 0 < size < _LEAST_TRANSFER_BYTES:
        raise ValueError(value)
    return size


def _num_lanes(value: Any) -> int:
    number = _number(value)
    if not 1 <= number <= _MAX_LANES or number != int(number):
        raise ValueError(value)
    return int(number)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value not in ("0", "1"):
        raise ValueError(value)
    return bool(value == "1")


def _socket(value: Any) -> str:
    if value == "none":
        return "none"
    is_path = isinstance(value, str) and value.startswith("/") and value[-1] != "/"
    if not is_path or len(value.encode()) > MAX_SOCKET_PATH_BYTES:
        raise ValueError(value)
    return str(value)


_ARBITER = re.compile(
    r"tcp:(?:[^\s:\[\]]{1,253}|\[[0-9a-fA-F:.]+(?:%[^\s\[\]]+)?\]):(?P<port>[0-9]{1,5})"
    r"|unix:/\S{0,98}[^\s/]"
)
_MOST_PORT = 65535


def _arbiter(value: Any) -> str:
    found = _ARBITER.fullmatch(value) if isinstance(value, str) else None
    is_address = found is not None and int(found["port"] or 0) <= _MOST_PORT
    if value != "none" and not is_address:
        raise ValueError(value)
    return str(value)


def _absolute(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/") or not value.isprintable():
        raise ValueError(value)
    return value


def _folder(value: Any) -> str:
    if not isinstance(value, str) or (value and not value.startswith("/")):
        raise ValueError(value)
    return value


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.9g}"


def _s(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{seconds:.9g}"


_LEAST_DEVICE_BYTES = 2 << 20
_LEAST_TRANSFER_BYTES = 1 << 20
_MAX_LANES = 16
_MOST_DEADLINE_SECONDS = 1_000_000
"""As the coordinator has it (``csrc/sched/job/ranges.cpp``)."""
_TIME = 'a time like "250ms", "10s" or "2 min"'
_SIZE = 'a size of at least 2 MiB like "2GiB"'
_TRANSFER = '0, or a size of at least 1 MiB like "500MiB"'
_FLAG = "0 or 1"
_NAME = f"printable text of at most {MAX_NAME_BYTES} bytes"
_JOB_NAME = f"{_NAME} that is not a number, since jobs have numbers of their own"

# fmt: off
SETTINGS: tuple[Setting, ...] = (
    Setting("socket", "coordinator.socket", "GPUSHARE_SOCKET", _socket,
            'an absolute path of at most 100 bytes, or "none"'),
    Setting("policy", "coordinator.policy", "GPUSHARE_POLICY", parse_choice(*POLICIES),
            ", ".join(POLICIES), "--policy"),
    Setting("max_wait_seconds", "coordinator.max_wait", "GPUSHARE_MAX_WAIT", _positive_seconds,
            f"{_TIME}, above 0", "--max-wait-ms", _ms),
    Setting("switch_loss", "coordinator.switch_loss", "GPUSHARE_SWITCH_LOSS", _loss,
            "a number above 0 and at most 0.5", "--switch-loss"),
    Setting("memory_wait_seconds", "coordinator.memory_wait", "GPUSHARE_MEMORY_WAIT", _seconds,
            _TIME, "--memory-wait-s", _s),
    Setting("min_quantum_seconds", "coordinator.min_quantum", "GPUSHARE_MIN_QUANTUM", _seconds,
            _TIME, "--min-quantum-ms", _ms),
    Setting("linger_seconds", "coordinator.linger", "GPUSHARE_LINGER", _linger,
            f'{_TIME}, or "never"', "--linger-s", _s),
    Setting("arbiter", "coordinator.arbiter", "GPUSHARE_ARBITER", _arbiter,
            '"tcp:HOST:PORT", "unix:/PATH", or "none"', "--arbiter-address"),
    Setting("arbiter_token_file", "coordinator.arbiter_token_file", "GPUSHARE_ARBITER_TOKEN_FILE",
            _absolute, "an absolute path", "--token-file"),
    Setting("lanes", "coordinator.lanes", "GPUSHARE_LANES", parse_choice("on", "off"), "on, off",
            "--lanes"),
    Setting("transfer_budget_bytes_per_second", "coordinator.transfer_budget",
            "GPUSHARE_TRANSFER_BUDGET", _transfer_budget, _TRANSFER, "--transfer-budget"),
    Setting("num_lanes", "coordinator.num_lanes", "GPUSHARE_NUM_LANES", _num_lanes,
            f"a whole number from 1 to {_MAX_LANES}", "--num-lanes"),
    Setting("capacity_bytes", "device.cpu.capacity", "GPUSHARE_CAPACITY",
            _bytes(_LEAST_DEVICE_BYTES), _SIZE, "--capacity"),
    # The variable is for whatever device; a file has one for each kind.
    Setting("cuda_capacity_bytes", "device.cuda.capacity", "GPUSHARE_CAPACITY",
            _bytes(_LEAST_DEVICE_BYTES), _SIZE),
    Setting("cuda_reserve_bytes", "device.cuda.reserve", "GPUSHARE_RESERVE", _bytes(0),
            'a size like "1.5GiB", or 0 for none'),
    Setting("host_budget_bytes", "host.budget", "GPUSHARE_HOST_BUDGET",
            _bytes(_LEAST_DEVICE_BYTES), _SIZE, "--host-budget"),
    Setting("host_ram_budget_bytes", "host.ram_budget", "GPUSHARE_HOST_RAM_BUDGET", _bytes(0),
            'a size like "4GiB"', "--host-ram-budget"),
    Setting("spill_dir", "host.spill_dir", "GPUSHARE_SPILL_DIR", _folder,
            "an absolute path, or empty for RAM", "--spill-dir", may_be_empty=True),
    Setting("log_level", "log.level", "GPUSHARE_LOG", parse_choice(*LOG_LEVELS),
            ", ".join(LOG_LEVELS), "--log-level"),
    Setting("name", "job.name", "GPUSHARE_NAME", parse_job_name, _JOB_NAME),
    Setting("group", "job.group", "GPUSHARE_GROUP", parse_name, _NAME),
    Setting("priority", "job.priority", "GPUSHARE_PRIORITY", parse_choice(*PRIORITIES),
            ", ".join(PRIORITIES), message="priority"),
    Setting("weight", "job.weight", "GPUSHARE_WEIGHT", parse_weight, "a finite number above 0",
            message="weight"),
    Setting("memory_limit_bytes", "job.memory_limit", "GPUSHARE_MEMORY_LIMIT", _bytes(0),
            'a size like "2GiB", or 0 for none', message="memory_limit_bytes"),
    Setting("deadline_seconds", "job.deadline", "GPUSHARE_DEADLINE", _deadline,
            f"{_TIME}, up to {_MOST_DEADLINE_SECONDS} s, or 0 for none", message="deadline_ns"),
    Setting("share_limit", "job.share_limit", "GPUSHARE_SHARE_LIMIT", _share,
            f"a number from {LEAST_SHARE} to 1, or 0 for none", message="share_limit"),
    Setting("elastic_limits", "job.elastic_limits", "GPUSHARE_ELASTIC_LIMITS", _flag, _FLAG,
            message="is_elastic"),
    Setting("elastic_threads", "job.elastic_threads", "GPUSHARE_ELASTIC_THREADS", _flag, _FLAG),
    Setting("sm_share", "job.sm_share", "GPUSHARE_SM_SHARE", _share,
            f"a number from {LEAST_SHARE} to 1, or 0 for as it is"),
    Setting("profile", "job.profile", "GPUSHARE_PROFILE", parse_name,
            f'{_NAME}, or "off" for none'),
    Setting("device", "job.device", "GPUSHARE_DEVICE", parse_wish, WISHES),
    Setting("idle_spill_seconds", "job.idle_spill", "GPUSHARE_IDLE_SPILL", _idle_spill,
            f'{_TIME}, above 0, or "never"'),
    Setting("disable", "job.disable", "GPUSHARE_DISABLE", _flag, _FLAG),
    Setting("lane_scrub", "job.lane_scrub", "GPUSHARE_LANE_SCRUB", _flag, _FLAG),
    Setting("overflow", "job.overflow", "GPUSHARE_OVERFLOW", _flag, _FLAG),
    Setting("lane_strict", "job.lane_strict", "GPUSHARE_LANE_STRICT", _flag, _FLAG),
    Setting("passthrough", "job.passthrough", "GPUSHARE_PASSTHROUGH",
            parse_choice(*AUTO_ON_OFF), ", ".join(AUTO_ON_OFF)),
    Setting("reachable", "job.reachable", "GPUSHARE_REACHABLE",
            parse_choice(*AUTO_ON_OFF), ", ".join(AUTO_ON_OFF)),
    Setting("safepoints", "job.safepoints", "GPUSHARE_SAFEPOINTS", _flag, _FLAG),
    Setting("require", "job.require", "GPUSHARE_REQUIRE", _flag, _FLAG),
    Setting("report", "job.report", "GPUSHARE_REPORT", _flag, _FLAG),
)
# fmt: on

OF_FILES = (
    Setting("cpu_reserve_bytes", "device.cpu.reserve", "", _bytes(0), 'a size like "64MiB"'),
)
"""Those that only files have. The coordinator reads them there, too, but a capacity of its command
line makes it forget the reserve of a file (``csrc/daemon/config/settings.cpp``)."""

BY_ARGUMENT = {setting.argument: setting for setting in SETTINGS if setting.key.startswith("job.")}
"""The settings of a job by their keywords."""
