"""The systemd unit: one template, of which each coordinator is an instance (``gpushared@cpu``).

The coordinator of several GPUs is ``gpushared@cuda``, and a file beside the unit names them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpushare._accounts.folders import SYSTEM_FOLDER as ACCOUNTS_FOLDER
from gpushare._settings.config import SYSTEM_FOLDER

UNIT_PATH = "/etc/systemd/system/gpushared@.service"
GPUS_PATH = "/etc/systemd/system/gpushared@cuda.service.d/devices.conf"
SERVICE_USER = "gpushared"
"""Not the group's name: removing a user also removes the group that is called like him."""

_SANDBOX = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM"""
"""What no service of gpushare's needs. Who may reach it over a network stands beside it."""

_TEXT = """\
# Written by `gpushare admin install`. To change something, use: systemctl edit gpushared@
# An instance is a device: gpushared@cpu, gpushared@cuda:GPU-... Several GPUs are gpushared@cuda.

[Unit]
Description=gpushare coordinator of %i

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} --device %i --socket-folder {folder} --mode 0660 \
--linger-s never --accounts-folder {accounts}
User={user}
Group={group}
UMask=0077

# A job waits 3 s for the next coordinator before it starts one of its own, so the next
# one starts at once. Exit code 2 says that a setting is wrong: to try again would not help.
Restart=on-failure
RestartSec=0
RestartPreventExitStatus=2
# The coordinator ends itself after 20 s without a turn of its loop; this also ends a stopped one.
WatchdogSec=30
TimeoutStopSec=10

# The folder belongs to all instances, so it stays when one of them stops. It is also why jobs
# believe this user: only root can have given it to him. It is open, so that others than the group
# are told which group they lack; the sockets are not.
RuntimeDirectory=gpushare
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes

# Accounts of finished jobs, which the group may read.
StateDirectory={state}
StateDirectoryMode=0750

# A job costs five descriptors. There is no MemoryMax: the coordinator takes the limit of its
# control group for the memory of the machine.
LimitNOFILE=65536
TasksMax=64
OOMScoreAdjust=-500

# The coordinator talks to jobs through its socket and shared memory, and reads /proc. It opens no
# device: jobs do that. It may not change a file's owner or group either, so it cannot have
# --socket-group; the socket belongs to Group= without.
{sandbox}
RestrictAddressFamilies=AF_UNIX
IPAddressDeny=any

# Left out on purpose. PrivateNetwork: coordinators see in the machine's network namespace that a
# device is taken. PrivateUsers: all users would look alike. ProtectProc: suspended jobs, and jobs
# of a coordinator that crashed, are found in /proc.

[Install]
WantedBy=multi-user.target
"""


def unit_text(*, program: str, group: str) -> str:
    """Returns the template unit.

    Args:
        program: The absolute path of ``gpushared``, as ``check_program`` allows it.
        group: Whose members may open the socket.
    """
    return _TEXT.format(
        program=program,
        user=SERVICE_USER,
        group=group,
        folder=SYSTEM_FOLDER,
        accounts=ACCOUNTS_FOLDER,
        state=ACCOUNTS_FOLDER.rpartition("/")[2],
        sandbox=_SANDBOX,
    )


def gpus_text(gpus: Sequence[str]) -> str:
    """Returns the file that names the GPUs of ``gpushared@cuda``; their size is the settings'."""
    return (
        "# Written by `gpushare admin install`: the GPUs that one coordinator shares.\n"
        f"[Service]\nEnvironment=GPUSHARE_DEVICES={','.join(gpus)}\n"
    )


def sandbox() -> str:
    """Returns the lines of a unit that take away what no service of gpushare's needs."""
    return _SANDBOX


def instance(device: str) -> str:
    """Returns the name of a device's unit; a device's name has no character to be escaped."""
    return f"gpushared@{device}.service"
