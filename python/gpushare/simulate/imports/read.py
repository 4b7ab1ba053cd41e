"""Recognises in which form a trace is."""

from __future__ import annotations

from gpushare.simulate.imports import philly, tables
from gpushare.simulate.imports.ran_job import Imported, import_jobs


def read(text: str) -> Imported | None:
    """Returns the trace that a text of another form means; None: it is in none that is known.

    Raises:
        ValueError: It has the columns of a form, and a line that does not fit; or no job of it
            can be simulated.
    """
    if philly.is_philly(text):
        return import_jobs(philly.FORM, philly.read(text))
    table = tables.find(text)
    return import_jobs(table.form, tables.read(table, text)) if table else None
