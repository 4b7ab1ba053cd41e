"""What jobs of several nodes need: an arbiter for the cluster, and coordinators that reach it.

The ranks of one program run together on several nodes, so somebody has to decide for all nodes
whose row is next. There is one arbiter for the whole cluster, and no job starts it: an arbiter that
the Prolog of a job's first node started would know that job alone, and a device that several jobs
share would have several authorities.

Whoever has the token may report ranks of any user. So only the user of the arbiter and of the
coordinators may read it. Scripts name its file, and jobs are told the arbiter's address alone.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from gpushare.admin.unit import SERVICE_USER, sandbox
from gpushare.admin.unit import UNIT_PATH as ADMIN_UNIT_PATH

TOKEN_FILE = "/etc/gpushare/token"
UNIT_PATH = "/etc/systemd/system/gpushare-arbiter.service"
COORDINATOR_UNIT_PATH = f"{ADMIN_UNIT_PATH}.d/gpushare_arbiter.conf"
"""systemd reads it beside the unit, which stays as ``gpushare admin install`` wrote it."""
_MOST_PORT = 65535
_ADDRESS = re.compile(
    r"tcp:(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})"
)
"""As the setting has it, less what nodes cannot reach and what units and scripts would quote."""
_PATH = re.compile(r"/[A-Za-z0-9_/.+,:=@-]+")

_UNIT = """\
# One arbiter for the cluster, on a host that all nodes reach, such as that of slurmctld.
# It and the coordinators have a secret in common. These commands make it, and its user:
#   useradd --system --no-create-home --shell /usr/sbin/nologin {user}
#   (umask 077; mkdir -p -m 0755 /etc/gpushare; head -c 32 /dev/urandom | base64 > {token})
#   chown {user} {token}
# Each node has a copy that only its coordinators' user may read. That is {user} where
# gpushare admin install has set them up, and root where Prolog starts them.

[Unit]
Description=gpushare arbiter of the jobs on several nodes
Wants=network-online.target
After=network-online.target
# Gangs wait while there is no arbiter, so it is started again however often it ends.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} --arbiter --listen {address} --token-file {token}
User={user}
UMask=0077

# Exit code 2 says that a setting is wrong: to try again would not help.
Restart=always
RestartSec=1
RestartPreventExitStatus=2
WatchdogSec=30
TimeoutStopSec=10
LimitNOFILE=65536
TasksMax=64
OOMScoreAdjust=-500

# The arbiter opens no file but the token, and has connections to coordinators. AF_UNIX is for
# systemd, and for services that look names up.
{sandbox}
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX

[Install]
WantedBy=multi-user.target
"""
_COORDINATOR_UNIT = """\
# Lets the coordinators of gpushare admin install reach the arbiter: that unit has no network.
# Only {user} may read the token: chown {user} {token}; chmod 400 {token}

[Service]
Environment=GPUSHARE_ARBITER={address}
Environment=GPUSHARE_ARBITER_TOKEN_FILE={token}
RestrictAddressFamilies=AF_INET AF_INET6
IPAddressAllow={allowed}
"""


@dataclass(frozen=True)
class Arbiter:
    """Where the arbiter of a cluster listens, and the file of its secret."""

    address: str
    token_file: str

    def __post_init__(self) -> None:
        """Checks both.

        Raises:
            ValueError: One of them is not allowed; the text names the option and what is.
        """
        found = _ADDRESS.fullmatch(self.address)
        if found is None or not 0 < int(found["port"]) <= _MOST_PORT:
            raise ValueError(
                f"--arbiter {self.address!r}: allowed: tcp:HOST:PORT, which all nodes reach"
            )
        if _PATH.fullmatch(self.token_file) is None:
            raise ValueError(
                f"--arbiter-token-file {self.token_file!r}: allowed: an absolute path of letters, "
                "digits and _/.+,:=@-"
            )

    def coordinator_options(self) -> list[str]:
        """Returns the options of a coordinator that has this arbiter."""
        return ["--arbiter-address", self.address, "--token-file", self.token_file]

    def unit(self, program: str) -> str:
        """Returns the systemd unit of the arbiter.

        Args:
            program: The path of gpushared on its host.
        """
        return _UNIT.format(
            user=SERVICE_USER,
            token=self.token_file,
            program=program,
            address=self.address,
            sandbox=sandbox(),
        )

    def coordinator_unit(self) -> str:
        """Returns what the coordinators' unit needs beside what ``gpushare admin install`` wrote.

        A unit cannot name hosts, so names that are looked up need the whole network.
        """
        host = self.address.removeprefix("tcp:").rpartition(":")[0].strip("[]")
        try:
            allowed = str(ipaddress.ip_address(host))
        except ValueError:
            allowed = "any"
        return _COORDINATOR_UNIT.format(
            user=SERVICE_USER, token=self.token_file, address=self.address, allowed=allowed
        )
