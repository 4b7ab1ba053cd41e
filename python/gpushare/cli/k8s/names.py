"""Names that Kubernetes refuses, refused here with the option that they come from."""

from __future__ import annotations

import re

import typer

_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_MOST_NAMESPACE = 63
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_MOST_DOMAIN = 253 - len("requests.")
"""Kubernetes puts "requests." before a resource's name in quotas."""
_RESOURCE = re.compile("[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9._:/@\[\]-]*")


def check_resource(name: str) -> None:
    """Checks the name of a resource that a device plugin offers.

    Raises:
        typer.BadParameter: Kubernetes takes no such name.
    """
    domain, slash, rest = name.partition("/")
    is_own = "kubernetes.io/" not in name and not name.startswith("requests.")
    is_right = len(domain) <= _MOST_DOMAIN and _DOMAIN.fullmatch(domain) and slash
    if not (is_right and is_own and _RESOURCE.fullmatch(rest)):
        raise typer.BadParameter(
            f"--resource: {name!r} is no name of a resource, such as gpushare.io/slot. "
            "Names of kubernetes.io are Kubernetes' own"
        )


def check_namespace(name: str) -> None:
    """Checks the name of a namespace.

    Raises:
        typer.BadParameter: Kubernetes takes no such name.
    """
    if len(name) > _MOST_NAMESPACE or not _NAMESPACE.fullmatch(name):
        raise typer.BadParameter(
            f"--namespace: {name!r} is no name of a namespace: at most 63 small letters, digits "
            "and, between them, hyphens"
        )


def check_image(name: str) -> None:
    """Checks the name of an image for characters that no image's name has.

    Raises:
        typer.BadParameter: It has one, or is empty.
    """
    if not _IMAGE.fullmatch(name):
        raise typer.BadParameter(f"--image: {name!r} is no name of an image")
