"""Sizes and times as people read them; the same forms as the logs of ``csrc/base/units.h``."""

from __future__ import annotations

GIB = 1 << 30
_STEPS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def format_bytes(size_bytes: int) -> str:
    """Returns, for example, "1.5 GiB", "20.0 MiB" or "512 B"."""
    for unit, step in _STEPS:
        if abs(size_bytes) >= step:
            return f"{size_bytes / step:.1f} {unit}"
    return f"{size_bytes} B"


def format_seconds(seconds: float) -> str:
    """Returns, for example, "1.2 s", "35 ms" or "4 us"."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds * 1e6:.0f} us"


def format_span(seconds: float) -> str:
    """Returns, for example, "0.25 s", "41.0 s", "12 min 5 s", "7 h 4 min" or "3 d 2 h"."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, small, small_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // small} {small_unit}"
    return f"{whole} s"
