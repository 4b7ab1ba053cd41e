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
from gpushare.cli._options.settings import check_settings, to_environment
from gpushare.cli.k8s import manifest
from gpushare.cli.k8s.names import check_image, check_namespace, check_resource
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
    resource: Annotated[
        str, typer.Option(help="The name of the resource that pods ask for.")
    ] = manifest.DEFAULTS["resource"],
    folder: _Folder = SYSTEM_FOLDER,
    kubelet_folder: Annotated[
        str, typer.Option(help="Where the kubelet's socket for device plugins is.")
    ] = _KUBELET_FOLDER,
) -> None:
    """Offer slots of this node's devices to the kubelet, until SIGTERM."""
    check_resource(resource)
    _check_absolute("--folder", folder)
    _check_absolute("--kubelet-folder", kubelet_folder)
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

    names = _device_names(devices)
    _check_absolute("--folder", folder)
    check_settings(os.environ)
    program = daemon_path()
    if not program:
        raise GpushareError("gpushared is not installed")
    # Lanes share memory among jobs of one user. Pods of one user, such as root, may belong to
    # people who do not know each other.
    common = ["--socket-folder", folder, "--mode", "0666", "--linger-s", "never", "--lanes", "off"]
    common += ["--accounts-folder", accounts_folder or "none"]
    # nvidia-smi does not say how large the parts of a divided GPU are. It is not asked where the
    # devices and their capacity are given.
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
    policy: Annotated[
        str, typer.Option(help="By which policy the coordinators choose the next job.")
    ] = "",
    capacity: Annotated[
        str, typer.Option(help="The memory of each device that jobs share, such as 40GiB.")
    ] = "",
    devices: Annotated[
        str, typer.Option(help="Devices of each node to share, as for coordinators.")
    ] = "",
    namespace: Annotated[str, typer.Option(help="Where the pods of gpushare run.")] = "gpushare",
) -> None:
    """Print manifests for kubectl apply: the coordinators and the device plugin of each node."""
    check_image(image)
    check_namespace(namespace)
    _device_names(devices)
    settings = {"policy": policy or None, "capacity_bytes": capacity or None}
    try:
        to_environment(settings)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    values: dict[str, Any] = {
        "image": image,
        "slotsPerDevice": str(slots_per_device),
        "policy": policy,
        "capacity": capacity,
        "devices": devices,
    }
    parts = [part.value] if part else ["namespace", "coordinators", "device-plugin"]
    print("---\n".join(manifest.plain(each, namespace, values) for each in parts), end="")


def _device_names(devices: str) -> list[str]:
    names = [name.strip() for name in devices.split(",") if name.strip()]
    for name in names:
        if not is_device_name(name):
            raise typer.BadParameter(f"--devices: {name!r} is no device's name")
    return names


def _check_absolute(option: str, path: str) -> None:
    if not os.path.isabs(path):  # noqa: PTH117 - a Path of "" is "."
        raise typer.BadParameter(f"{option}: {path!r} is no absolute path")


def _stop_event() -> threading.Event:
    """Returns an event that SIGTERM and Ctrl-C set.

    Linux drops signals without a handler that are for the first process of a container.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop
