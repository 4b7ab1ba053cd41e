"""The texts that ``gpushare slurm print-config`` prints.

Slurm admits jobs by shards; whose turn it is on a GPU is the coordinator's matter.
A coordinator must not be a process of the job whose Prolog or step starts it: it would end with the
job. So it is a service of the node, or is started by Prolog in a session of its own. It needs no
Epilog: it sees that a process is gone by itself. What jobs of several nodes need is in
``arbiter_fragments.py``.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from gpushare._accounts.folders import SYSTEM_FOLDER as ACCOUNTS_FOLDER
from gpushare._settings.config import SYSTEM_FOLDER
from gpushare.admin.unit import UNIT_PATH

if TYPE_CHECKING:
    from gpushare.cli.slurm.arbiter_fragments import Arbiter

_TASK_PROLOG = """\
#!/bin/sh
# Runs before each task, as its user. What it prints becomes the task's environment.
# Other characters of a name would have to be quoted in commands.
name=$(printf %s "${SLURM_JOB_NAME:-job}" | tr -c 'A-Za-z0-9._-' _ | cut -c1-40)
echo "export GPUSHARE_NAME=$name.$SLURM_JOB_ID"
[ -z "$SLURM_ARRAY_JOB_ID" ] || echo "export GPUSHARE_GROUP=$name.$SLURM_ARRAY_JOB_ID"
# Among the jobs of one user, who has more shards has more time.
[ -z "$SLURM_SHARDS_ON_NODE" ] || echo "export GPUSHARE_WEIGHT=$SLURM_SHARDS_ON_NODE"
# A job that cannot share ends with exit code 3, instead of taking the GPU from the others.
echo export GPUSHARE_REQUIRE=1
"""
_TASK_PROLOG_ARBITER = """\
# The tasks of a job on several nodes are ranks of one program. All of them name one arbiter.
echo 'export GPUSHARE_ARBITER={address}'
"""

_PROLOG = """\
#!/bin/sh
# Runs as root on each node of a job before it begins. It ends with 0 in any case: Slurm drains a
# node whose Prolog fails. After gpushare admin install there is nothing to do: systemd has started
# the coordinators.
[ -e {unit} ] && [ -d /run/systemd/system ] && exit 0
umask 022
mkdir -p {folder} {accounts}
# Where one of the device runs already, this does nothing.
start() {{
  {program} --daemonize "$@" --socket-folder {folder} --mode 0660 --socket-group {group} \\
    {arbiter}--linger-s never --accounts-folder {accounts} --log-file {log}
}}
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader,nounits |
    while IFS=', ' read -r uuid mib; do
      start --device "cuda:$uuid" --device-memory "${{mib}}MiB"
    done
else
  start --device cpu
fi
exit 0
"""


def slurm_conf(num_gpus: int, shards: int) -> str:
    """Returns the lines for slurm.conf.

    Args:
        num_gpus: Of a node.
        shards: Jobs that may share a GPU.
    """
    return f"""\
GresTypes=gpu,shard
PrologFlags=Alloc
Prolog=/etc/slurm/gpushare_prolog.sh
TaskProlog=/etc/slurm/gpushare_task_prolog.sh
# Add to the NodeName= line of each such node:
#   Gres=gpu:{num_gpus},shard:{num_gpus * shards}
# Users ask for a part of a GPU: sbatch --gres=shard:1, and start programs by gpushare run.
# PreemptMode=GANG is not needed, and suspends whole jobs for seconds: leave it out.
"""


def gres_conf(num_gpus: int, shards: int) -> str:
    """Returns the lines for gres.conf; see ``slurm_conf``."""
    last = f"[0-{num_gpus - 1}]" if num_gpus > 1 else "0"
    return f"Name=gpu File=/dev/nvidia{last}\nName=shard Count={num_gpus * shards}\n"


def prolog(group: str, program: str, arbiter: Arbiter | None) -> str:
    """Returns the script Prolog.

    Args:
        group: That may use the coordinators.
        program: The path of gpushared.
        arbiter: Of the cluster; None: it has none.
    """
    options = [] if arbiter is None else arbiter.coordinator_options()
    return _PROLOG.format(
        unit=UNIT_PATH,
        folder=SYSTEM_FOLDER,
        accounts=ACCOUNTS_FOLDER,
        group=shlex.quote(group),
        program=shlex.quote(program),
        arbiter=f"{shlex.join(options)} \\\n    " if options else "",
        log="/var/log/gpushare.log",
    )


def task_prolog(arbiter: Arbiter | None) -> str:
    """Returns the script TaskProlog.

    Args:
        arbiter: Of the cluster; None: it has none.
    """
    if arbiter is None:
        return _TASK_PROLOG
    return _TASK_PROLOG + _TASK_PROLOG_ARBITER.format(address=arbiter.address)
