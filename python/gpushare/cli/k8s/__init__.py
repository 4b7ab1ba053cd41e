"""``gpushare k8s``: share the devices of the nodes of a Kubernetes cluster."""

from __future__ import annotations

import os
import signal
import threading
from enum import Enum
from typing import Annotated, Any

import typer

from gpushare._settings.config import SYSTEM_FOLDER, daemon_path
from gpushare._settings.devices import is_device_name
from gpushare.admin.gpus import find_gpus
from gpushare.cli.k8s import manifest
from gpushare.errors import GpushareError
from gpushare.extras import check_installed

_KUBELET_FOLDER = "/var/lib/kubelet/device-plugins"
_Folder = Annotated[str, typer.Option(help="Where the coordinators listen.")]


class Part(str, Enum):
    """A part of what a cluster needs."""

    COORDINATORS = "coordinators"
    DEVICE_PLUGIN = "device-plugin"
    EXAMPLE_POD = "example-pod"


def add_to(app: typer.Typer) -> None:
    """Adds the subcommands."""
    group = typer.Typer(help="Share the devices of a Kubernetes cluster.", no_args_is_help=True)
    group.command(name="device-plugin")(device_plugin)
    group.command(name="coordinators")(coordinators)
    group.command(name="print-manifest")(print_manifest)
    app.add_typer(group, name="k8s")


def device_plugin(
    slots_per_device: Annotated[
        int, typer.Option(help="How many containers may share a device.", min=1, max=1024)
    ] = 4,
    resource: Annotated[str, typer.Option(help="What pods ask for.")] = manifest.DEFAULTS[
        "resource"
    ],
    folder: _Folder = SYSTEM_FOLDER,
    kubelet_folder: Annotated[
        str, typer.Option(help="Where the kubelet's socket for device plugins is.")
    ] = _KUBELET_FOLDER,
) -> None:
    """Offer slots of this node's devices to the kubelet, until SIGTERM."""
    check_installed(
        "the device plugin",
        "k8s",
        "grpc",
        "google.protobuf",
        packages={"grpc": "grpcio", "google.protobuf": "protobuf"},
    )
    from gpushare.cli.k8s.serve import PluginOptions, PluginServer

    options = PluginOptions(
        kubelet_folder=kubelet_folder,
        folder=folder,
        resource=resource,
        slots_per_device=slots_per_device,
    )
    PluginServer(options).run(_stop_event())


def coordinators(
    devices: Annotated[
        str,
        typer.Option(
            help="Devices to share, with commas between; by default the GPUs, or the CPU."
        ),
    ] = "",
    folder: _Folder = SYSTEM_FOLDER,
    accounts_folder: Annotated[
        str, typer.Option(help="Where accounts of finished jobs go; without it none are kept.")
    ] = "",
) -> None:
    """Run a coordinator for each device of this node, until SIGTERM. Any user may open it."""
    from gpushare.cli.k8s.supervisor import Supervisor, device_arguments

    names = [name.strip() for name in devices.split(",") if name.strip()]
    for name in names:
        if not is_device_name(name):
            raise typer.BadParameter(f"--devices: {name!r} is no device's name")
    program = daemon_path()
    if not program:
        raise GpushareError("gpushared is not installed")
    # Pods of one user, such as root, may belong to people who do not know each other: no lanes.
    common = ["--socket-folder", folder, "--mode", "0666", "--linger-s", "never", "--lanes", "off"]
    common += ["--accounts-folder", accounts_folder or "none"]
    # Of a divided GPU nvidia-smi tells no sizes, so whoever names its parts says them.
    gpus = [] if names and os.environ.get("GPUSHARE_CAPACITY") else find_gpus()
    Supervisor(program, common, device_arguments(names, gpus)).run(_stop_event())


def print_manifest(
    part: Annotated[Part | None, typer.Argument(help="Print this part alone.")] = None,
    *,
    image: Annotated[
        str, typer.Option(help="An image with gpushare and its extra k8s.")
    ] = manifest.DEFAULTS["image"],
    slots_per_device: Annotated[
        int, typer.Option(help="How many containers may share a device.", min=1, max=1024)
    ] = 4,
    policy: Annotated[str, typer.Option(help="Whom the coordinators serve next.")] = "",
    capacity: Annotated[
        str, typer.Option(help="The memory of each device that jobs share, such as 40GiB.")
    ] = "",
    devices: Annotated[
        str, typer.Option(help="Devices of each node to share, as for coordinators.")
    ] = "",
    namespace: Annotated[str, typer.Option(help="Where the pods of gpushare run.")] = "gpushare",
) -> None:
    """Print manifests for kubectl apply: the coordinators and the device plugin of each node."""
    values: dict[str, Any] = {
        "image": image,
        "slotsPerDevice": str(slots_per_device),
        "policy": policy,
        "capacity": capacity,
        "devices": devices,
    }
    parts = [part.value] if part else ["namespace", "coordinators", "device-plugin"]
    print("---\n".join(manifest.plain(each, namespace, values) for each in parts), end="")


def _stop_event() -> threading.Event:
    """An event that SIGTERM and Ctrl-C set. The first process of a container needs a handler."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop
