"""Users of the machine, as people know them."""

from __future__ import annotations

import pwd
import re

_USER = re.compile(r"\buser ([0-9]{1,10})\b")


def user_name(uid: int) -> str:
    """Returns the user's name, or the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):  # larger than any user's number
        return str(uid)


def with_user_names(text: str) -> str:
    """Returns a coordinator's text with names for the numbers of users that it has."""
    return _USER.sub(lambda found: f"user {user_name(int(found[1]))}", text)
