"""Users of the machine, as people know them."""

from __future__ import annotations

import pwd


def user_name(uid: int) -> str:
    """Returns the user's name, or the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
