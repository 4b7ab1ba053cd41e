"""All kinds of faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults import limit_faults, machine_faults, peer_faults, process_faults, requests

if TYPE_CHECKING:
    from tests.faults.campaign import Kind

KINDS = [
    *process_faults.KINDS,
    *machine_faults.KINDS,
    *limit_faults.KINDS,
    *peer_faults.KINDS,
    *requests.KINDS,
]


def chosen(parts: str | None) -> list[Kind]:
    """The kinds whose names have one of these parts, which commas separate; None: all kinds."""
    if parts is None:
        return KINDS
    return [kind for kind in KINDS if any(part in kind.name for part in parts.split(","))]
