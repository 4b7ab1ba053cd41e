"""Says what is wrong with an answer that is no coordinator's."""

from __future__ import annotations

import json


def describe_fault(error: Exception) -> str:
    """Returns in plain words why an answer could not be read.

    Args:
        error: What reading it raised: a KeyError, TypeError, ValueError, AttributeError or
            RecursionError.
    """
    if isinstance(error, KeyError):
        return f'the field "{error.args[0]}" is missing'
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return "it is no JSON"
    return "a value in it is of another kind than it should be"
