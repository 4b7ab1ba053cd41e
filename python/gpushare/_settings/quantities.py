"""Sizes and times as settings spell them, in the grammar of the daemon (``csrc/base/units.h``)."""

from __future__ import annotations

import math
import re

_QUANTITY = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_BYTES = {"": 1, "b": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("", 1024), ("ib", 1024), ("b", 1000))
}
_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip
_MOST_BYTES = 9e18
_LEAST_BYTES_WITHOUT_UNIT = 1 << 20
_MOST_SECONDS = 1e9
_MOST_DIGITS = 18
"""All numbers of so many digits fit into 63 bits, which messages and databases hold."""


def is_number(text: str) -> bool:
    """Whether a text is the number of a job or a user, and not a name.

    Digits of other alphabets make a name. Another user could give such a name to his job, and a
    command would then act on the job whose number it resembles.
    """
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


class MissingUnitError(ValueError):
    """A time, or a small size, was written without its unit; the text says how to write it."""


def parse_bytes(text: str | int) -> int:
    """Returns the number of bytes that a text such as "2GiB", "512 MB" or "1048576" names.

    Args:
        text: A number with a unit, or a number of bytes. "KB" is 1,000 bytes, "K" and "KiB" 1,024.
            Whoever writes less than 1 MiB without a unit has forgotten it.

    Raises:
        MissingUnitError: The text is a number below 1 MiB without a unit, and not 0.
        ValueError: It is no size, negative, or too large.
    """
    factor, amount = _split(str(text), _BYTES, 'a size like "2GiB", "512 MiB" or "1048576"')
    if isinstance(text, str) and is_without_unit(text) and amount < _LEAST_BYTES_WITHOUT_UNIT:
        number = text.strip()
        raise MissingUnitError(f"say {number}GiB or {number}MiB ({number} bytes are {number}B)")
    size = amount * factor
    if size > _MOST_BYTES:
        raise ValueError(f"{text!r} is no size: at most 9e18 bytes")
    return int(size)


def parse_seconds(text: str | float) -> float:
    """Returns the number of seconds that a text such as "250ms", "10s" or "2 min" names.

    Args:
        text: A number with a unit (ns, us, ms, s, min or m, h), or "0". What is no text is a number
            of seconds.

    Raises:
        MissingUnitError: The text is a number without a unit, and not 0.
        ValueError: It is no time, negative, or longer than 31 years.
    """
    factor, amount = _split(str(text), _SECONDS, 'a time like "250ms", "10s" or "2 min"')
    if isinstance(text, str) and is_without_unit(text):
        raise MissingUnitError(f"say {text.strip()}ms or {text.strip()}s")
    seconds = amount * factor
    if seconds > _MOST_SECONDS:
        raise ValueError(f"{text!r} is no time: at most 1e9 seconds")
    return seconds


def is_without_unit(text: str) -> bool:
    """Tells whether this is a number other than 0, and nothing else."""
    match = _QUANTITY.fullmatch(text)
    return match is not None and not match[2] and float(match[1]) != 0


def parse_number(text: str | float) -> float:
    """Returns a finite number.

    Raises:
        ValueError: It is none.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    return number


def _split(
    text: str, units: dict[str, float] | dict[str, int], allowed: str
) -> tuple[float, float]:
    match = _QUANTITY.fullmatch(text)
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not {allowed}")
    return factor, float(match[1])
