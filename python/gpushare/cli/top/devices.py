"""The top of the screen: each device, its memory, who has its lease and who is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpushare._settings.devices import label
from gpushare.cli._status.table import host_text, shorten
from gpushare.cli.top.columns import short_seconds
from gpushare.cli.top.glyphs import Glyphs, Part, bar, curve
from gpushare.cli.top.history import History, Means, used_part
from gpushare.cli.top.line import Line, Span, cut, span, spread, width_of, wrap
from gpushare.cli.units import format_bytes

if TYPE_CHECKING:
    from gpushare.cli.top.look import Look, Silent

_RUNNING = {"running", "closing"}
_GAP = "   "
_MOST_HOLDERS = 4
_LEAST_BAR = 8
_MOST_NAME = len("CUDA GPU-12345678")


class Place(NamedTuple):
    """Where the lines are to stand."""

    width: int
    """In places of the terminal."""
    glyphs: Glyphs
    has_past: bool
    """Something was seen earlier, so that a curve says something."""
    is_compact: bool
    """One line for each device."""


def device_lines(look: Look, place: Place) -> list[Line]:
    """Returns the lines of all devices, and of coordinators that do not answer."""
    devices = look.devices()
    has_several = len(devices) > 1
    lines: list[Line] = []
    for number, device in enumerate(devices):
        name = f"{number} " if has_several else ""
        name += _short(label(device["device"]), place)
        if place.is_compact:
            lines.append(_compact_line(device, name, place))
        else:
            lines += _block(device, name, look.history, place)
    for silent in look.silent:
        lines += _silent_lines(silent, place, is_alone=not devices)
    if "coordinator" in look.report and look.report["coordinator"]["is_recovering"]:
        text = "the coordinator has just restarted and waits for its jobs to come back"
        lines.append(cut((Span(text, "warning"),), place.width))
    return lines


def _block(device: dict[str, Any], name: str, history: History, place: Place) -> list[Line]:
    key, used = device["device"], history.used.get(device["device"], Means()).values()
    leased = history.leased.get(key, Means()).values()
    facts = f" {format_bytes(device['capacity_bytes'])}{_GAP}policy {device['policy']}"
    return [
        spread(
            (span(name, "name"), span(facts)),
            _curve("leased", device.get("busy", 0.0), leased, place),
            place.width,
        ),
        _memory_line(device, _curve("memory", used_part(device), used, place), place),
        spread((span("  " + _holders(device)),), (span(_host(device)),), place.width),
    ]


def _curve(title: str, now: float, values: list[float | None], place: Place) -> Line:
    """A part of the whole: as a number, and how it was in the last minutes."""
    text = span(f"{title} {now:4.0%}")
    if not place.has_past:
        return (text,)
    width = max(12, min(60, place.width // 4 - 8))
    return (text, Span(" " + curve(values, 1.0, width, place.glyphs), "curve"))


def _short(name: str, place: Place) -> str:
    """A device's name; of a GPU's long number the first part, which mostly tells it from others."""
    return name if place.width >= 120 and not place.is_compact else name[:_MOST_NAME]


def _host(device: dict[str, Any]) -> str:
    return host_text(device) if "host_used_bytes" in device else ""  # else an earlier version


def _memory_line(device: dict[str, Any], right: Line, place: Place) -> Line:
    """A bar of the device's memory, and what of it is in use."""
    width = place.width
    resident = sum(job["resident_bytes"] for job in device["jobs"])
    pool = sum(lane.get("pool_bytes", 0) for lane in device["lanes"])
    shared = f", shared {format_bytes(pool)}" if pool and width >= 100 else ""
    start, end = f" resident {format_bytes(resident)}{shared}", f", free {_free(device)}"
    size = max(4, min(40, max(10, width // 5), width - len(f"  {start}{end}")))
    # Room that jobs may use and do not: with it the figures make the capacity.
    unused = device["capacity_bytes"] - resident - pool - max(device["free_bytes"], 0)
    whole = f"{start}, unused room {format_bytes(unused)}{end}"
    left_over = width - len(f"  {whole}  ") - width_of(right)
    if unused > 0 and left_over >= _LEAST_BAR:
        return spread(_bar_and(whole, device, min(size, left_over), place), right, width)
    return spread(_bar_and(start + end, device, size, place), right, width)


def _bar_and(text: str, device: dict[str, Any], size: int, place: Place) -> Line:
    return (Span("  "), *_bar(device, size, place.glyphs), span(text))


def _free(device: dict[str, Any]) -> str:
    return format_bytes(max(device["free_bytes"], 0))


def _bar(device: dict[str, Any], width: int, glyphs: Glyphs) -> Line:
    own = sum(job["resident_bytes"] for job in device["jobs"] if job["state"] in _RUNNING)
    others = sum(job["resident_bytes"] for job in device["jobs"]) - own
    pool = sum(lane.get("pool_bytes", 0) for lane in device["lanes"])
    parts = [
        Part(own, glyphs.own, "running"),
        Part(others, glyphs.others, "others"),
        Part(pool, glyphs.shared, "shared"),
    ]
    return bar(parts, device["capacity_bytes"], width, Part(0, glyphs.free, "dim"))


def _holders(device: dict[str, Any]) -> str:
    """Who has a lease and until when, and who is next."""
    if not device["jobs"]:
        return "no jobs"
    names = {job["job"]: job["name"] for job in device["jobs"]}
    held = [lane for lane in device["lanes"] if lane["holder"]]
    texts = [f"{_who(lane['holder'], names)} runs{_until(lane)}" for lane in held[:_MOST_HOLDERS]]
    if len(held) > _MOST_HOLDERS:
        texts.append(f"{len(held) - _MOST_HOLDERS} more run")
    followers = [lane["next"] for lane in device["lanes"] if lane["next"]]
    texts += [f"{_who(number, names)} is next" for number in followers[:_MOST_HOLDERS]]
    return "; ".join(texts) or "nobody has the lease"


def _until(lane: dict[str, Any]) -> str:
    """How long a lease lasts at most, where anybody waits for its end."""
    left = lane.get("quantum_left_seconds", 0.0)
    if left:
        return f", {short_seconds(left)} left"
    return " to its boundary" if lane["next"] else ""


def _who(number: int, names: dict[int, str]) -> str:
    name = names.get(number, "")
    return f"{number} ({shorten(name, 16)})" if name else str(number)


def _compact_line(device: dict[str, Any], name: str, place: Place) -> Line:
    capacity = device["capacity_bytes"]
    used = format_bytes(capacity - max(device["free_bytes"], 0))
    leased = f"leased {device.get('busy', 0.0):4.0%}"
    left: Line = (
        span(name, "name"),
        Span(" "),
        *_bar(device, max(8, place.width // 8), place.glyphs),
        span(f" {used}/{format_bytes(capacity)} {leased}"),
    )
    return cut((*left, span(f"  {_holders(device)}")), place.width)


def _silent_lines(silent: Silent, place: Place, *, is_alone: bool) -> list[Line]:
    """A device without a coordinator is nothing bad: the next job starts one."""
    name = label(silent.device) if silent.device else "coordinator"
    lines = wrap(f"{name}: {silent.why}", place.width, "warning")
    if is_alone:
        lines += wrap("This screen goes on to look for one.", place.width)
    return lines if is_alone else lines[:1]
