"""Options of subcommands that are settings: checked as the setting is, passed on by environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import typer

from gpushare._settings import config
from gpushare._settings.config_notes import config_notes
from gpushare._settings.settings import POLICIES, SETTINGS, Setting


def to_environment(values: Mapping[str, str | float | bool | None]) -> dict[str, str]:
    """Checks options and spells them as environment variables.

    Args:
        values: The option's value by the name of its field in ``Config``; None where the user gave
            none.

    Raises:
        ValueError: A value is not allowed; the text names option, value and what is.
    """
    environment = {}
    for setting in SETTINGS:
        value = values.get(setting.field)
        if value is None:
            continue
        text = str(int(value)) if isinstance(value, bool) else str(value)
        _check(setting, text, option_of(setting))
        environment[setting.variable] = text
    return environment


def option_of(setting: Setting) -> str:
    """Returns what a setting is called as an option of a command: "--spill-dir"."""
    return "--" + setting.variable.removeprefix("GPUSHARE_").lower().replace("_", "-")


def check_settings(environment: Mapping[str, str]) -> config.Config:
    """Reads all settings before anything is started, and says what in them is probably a mistake.

    Args:
        environment: Of what is to be started.

    Raises:
        ConfigError: A value is bad, or a file cannot be read.
    """
    settings = config.load(environment)
    for note in config_notes(environment):
        print(f"gpushare: {note}", file=sys.stderr)
    return settings


def check_policy(name: str) -> None:
    """Checks a policy's name.

    Raises:
        typer.BadParameter: No policy is called so; the text names those that there are.
    """
    if name not in POLICIES:
        raise typer.BadParameter(f"policy {name}: allowed: {', '.join(POLICIES)}")


def _check(setting: Setting, text: str, shown: str) -> None:
    try:
        setting.parse(text)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{shown} {text}: {setting.refusal(error)}") from error
