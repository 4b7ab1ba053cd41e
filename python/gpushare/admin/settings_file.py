"""The first text of the machine's settings file, for the administrator to change."""

from __future__ import annotations

from gpushare._settings.quantities import parse_bytes

_TEXT = """\
# Settings of gpushare for all users of this machine. docs/shared_machine.md explains them.
# The coordinators read this file when they start: systemctl restart 'gpushared@*'
#
# The unit says whom the socket lets in (Group=, --mode), and this file does not: a coordinator that
# a user starts for himself reads this file, too, and must not open to others.

[coordinator]
# policy = "fair"                # docs/policies.md has them all
{devices}
# Jobs use the first GPU unless they name another. With these lines the coordinator of several GPUs
# chooses one for each, and makes it the first that the job sees (docs/host.md).
# [job]
# device = "any"

# What each user may have who has no table of his own. Without a line here the coordinators of the
# service allow the class normal and 64 jobs at a time.
[user.default]
# max_priority = "interactive"   # the highest class: guaranteed, interactive, normal, opportunistic
# max_jobs = 8
# memory_limit = "8GiB"          # of all jobs of a user together
# share_limit = 0.5              # of the device's time
# elastic = true                 # both limits bind only while others want what is beyond them

# [user.alice]
# weight = 2                     # twice the time of others
# max_priority = "interactive"
"""

_LEAST_BYTES_TO_RESERVE_OF = 15 << 30
"""Less is no whole GPU, or a small one, of which somebody should decide what jobs lack."""


def _reserve_line(size: str) -> str:
    mark = "" if parse_bytes(size) >= _LEAST_BYTES_TO_RESERVE_OF else "# "
    line = f'{mark}reserve = "1.5GiB"'
    return line.ljust(32) + " # of the capacity, kept for what drivers and libraries take\n"


def settings_text(capacities: dict[str, str]) -> str:
    """Returns the text.

    Args:
        capacities: The device memory that jobs share, by kind of device ("cpu", "cuda"), where it
            is known.
    """
    tables = [
        f"\n[device.{kind}]\n"
        + f'capacity = "{size}"'.ljust(32)
        + " # device memory that all jobs share\n"
        + (_reserve_line(size) if kind == "cuda" else "")
        for kind, size in capacities.items()
    ]
    return _TEXT.format(devices="".join(tables))
