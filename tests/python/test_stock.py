"""A job's files, attributes, scripts and compiled graphs are those of stock torch, byte by byte."""

from __future__ import annotations

import pytest

from tests.python import stock_programs
from tests.python.conftest import clean_environment
from tests.support import forked


@pytest.mark.parametrize("name", stock_programs.PROGRAMS)
def test_nothing_of_gpushare_is_in_what_a_program_makes(
    name: str, coordinator: dict[str, str]
) -> None:
    words = ["-m", "tests.python.stock_programs", name]
    alone = forked.run(words, clean_environment(disable="1"), timeout=200)
    assert alone.returncode == 0, alone.stderr
    shared = forked.run(
        [*words, "shared"], clean_environment(report="0", **coordinator), timeout=200
    )
    assert shared.returncode == 0, shared.stderr
    assert shared.stdout == alone.stdout
    iterations = int(shared.stderr.splitlines()[-1])
    assert iterations == stock_programs.ITERATIONS.get(name, iterations)
    assert iterations >= 3
