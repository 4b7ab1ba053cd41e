"""Workers of a Ray cluster of several nodes: gpushare, with the arbiter of ``gpushare ray up``.

    ray.init(runtime_env={"worker_process_setup_hook": "gpushare.integrations.ray_nodes.enable"})

``gpushare ray up`` leaves a notice on each node: a file that tells workers the settings of their
arbiter. The path of the token's file may differ from node to node, and Ray's ``env_vars`` are the
same on all of them.
"""

from __future__ import annotations

import json
import os

from gpushare import auto
from gpushare._settings.config import socket_folders
from gpushare._settings.own_folder import read_own_file

HOOK = f"{__name__}.enable"
ARBITER = "GPUSHARE_ARBITER"
TOKEN_FILE = "GPUSHARE_ARBITER_TOKEN_FILE"


def enable() -> None:
    """Does what ``gpushare.auto.enable`` does, with the settings that this node's notice tells.

    They change nothing where the environment names an arbiter. A node that has no agent of
    ``gpushare ray up`` has no notice.
    """
    if not os.environ.get(ARBITER):
        os.environ.update(noticed(read_own_file(notice_path())))
    auto.enable()


def notice_path() -> str:
    """Returns where the notice is on this node."""
    return f"{socket_folders()[1]}/ray.json"


def noticed(text: str) -> dict[str, str]:
    """Returns the settings of a notice as variables; none if it is no notice.

    Args:
        text: Of the file; "" if there is none.
    """
    try:
        told = json.loads(text)["environment"]
        return {name: str(told[name]) for name in (ARBITER, TOKEN_FILE)}
    except (ValueError, KeyError, TypeError):
        return {}
