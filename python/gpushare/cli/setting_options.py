"""Options of subcommands that are settings: checked as the setting is, passed on by environment."""

from __future__ import annotations

from collections.abc import Mapping

from gpushare.settings import SETTINGS


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
        try:
            setting.parse(text)
        except (ValueError, TypeError) as error:
            option = "--" + setting.variable.removeprefix("GPUSHARE_").lower().replace("_", "-")
            raise ValueError(f"{option} {text}: allowed: {setting.allowed}") from error
        environment[setting.variable] = text
    return environment
