"""The compiled module exports its entry point and nothing else.

Whatever else it exported could be taken for, or replaced by, a symbol of another library in the
process; and hidden symbols are what lets the linker leave out unused code.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from source_tree import main

ALLOWED = {"PyInit__C"}
# The linker's own marks, without a meaning for others.
_LINKER = {"_init", "_fini", "_edata", "_end", "__bss_start"}


def exported_symbols(library: Path) -> set[str]:
    """Names that other libraries in a process could bind to.

    Weak and unique ones are left out: those are the standard library's templates, which C++ wants
    merged, and type information of torch's classes.
    """
    listed = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=posix", str(library)],
        check=True,
        capture_output=True,
        text=True,
    )
    fields = [line.split() for line in listed.stdout.splitlines()]
    return {name for name, kind, *_ in fields if kind not in {"W", "V", "w", "v", "u"}} - _LINKER


def find_problems(root: Path) -> list[str]:
    """One line for each symbol too many, or one saying that there is no module."""
    libraries = sorted((root / "python" / "gpushare").glob("_C*.so"))
    if not libraries:
        return ["python/gpushare/_C*.so: not built; `make build` does it"]
    problems = []
    for library in libraries:
        symbols = exported_symbols(library)
        problems += [f"{library.name}: exports {name}" for name in sorted(symbols - ALLOWED)]
        problems += [f"{library.name}: lacks {name}" for name in sorted(ALLOWED - symbols)]
    return problems


if __name__ == "__main__":
    main(find_problems, "symbols")
