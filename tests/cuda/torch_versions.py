"""The table of torch versions, docs/torch_versions.md: what the suite on the fake device found.

`scripts/torch_versions` calls it after each version. Rows of other versions stay as they are::

    python -m tests.cuda.torch_versions --torch 2.13.0 --python PYTHON --junit FILE --command TEXT
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from benchmarks.device.outcomes import Part, read_junit

TABLE = Path(__file__).resolve().parents[2] / "docs" / "torch_versions.md"
NEEDED_SLOTS = ("cudaMalloc", "cudaFree", "cudaMemGetInfo")
FIGURE_LIBRARIES = ("libtorch_cuda.so", "libtorch_python.so")
"""Show figures to the user: their slot of cudaMemGetInfo is replaced where there is one."""
UNKNOWN = "-"

_HEAD = """# Versions of torch

What `scripts/torch_versions` found with the CUDA build of each version of torch: whether gpushare
compiles, whether the import slots are there that it replaces, and what `tests/cuda` says, on the
fake CUDA device (`tests/fakecuda`), whose driver is of CUDA 13.0. No GPU. The tests are `all`, or
with `--quick` those that most depend on torch. A version of torch is among those that gpushare
takes on CUDA (`TESTED_TORCH`) if all tests passed.

Import slots: of {needed} in `libc10_cuda.so`, + those of
cudaMemGetInfo in {figures}, which may lack it.

Last command: `{command}`

"""

_ASK = """
import json, os, platform, torch
print(json.dumps({"cuda": torch.version.cuda, "python": platform.python_version(),
    "folder": os.path.dirname(torch.__file__)}))
"""


@dataclass(kw_only=True)
class Row:
    """One version; all fields are text as the table has it."""

    torch: str
    cuda: str = UNKNOWN
    python: str = UNKNOWN
    import_slots: str = UNKNOWN
    tests: str = UNKNOWN
    passed: str = UNKNOWN
    failed: str = UNKNOWN
    skipped: str = UNKNOWN
    date: str = ""
    notes: str = ""

    @property
    def minor(self) -> str:
        """2.13 of 2.13.0."""
        return ".".join(self.torch.split(".")[:2])

    @property
    def is_good(self) -> bool:
        """Whether all slots were found and tests ran, none of which failed."""
        has_tests = self.passed.isdigit() and int(self.passed) > 0
        return has_tests and self.failed == "0" and self.import_slots.startswith(slots_text(3))


def slots_text(num_needed: int) -> str:
    """As the table says it."""
    return f"{num_needed} of {len(NEEDED_SLOTS)}"


def read_rows(text: str) -> list[Row]:
    """The rows of a table that write() wrote."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0][:1].isdigit():
            names = (field.name for field in fields(Row))
            rows.append(Row(**dict(zip(names, cells, strict=True))))
    return rows


def write(path: Path, row: Row, command: str) -> None:
    """Puts the row into the file, in the place of an older one of this version."""
    rows = read_rows(path.read_text()) if path.exists() else []
    rows = [other for other in rows if other.torch != row.torch] + [row]
    rows.sort(key=lambda each: [int(part) for part in each.torch.split(".")])
    head = _HEAD.format(
        needed=", ".join(NEEDED_SLOTS), figures=" and ".join(FIGURE_LIBRARIES), command=command
    )
    titles = [field.name.replace("_", " ") for field in fields(Row)]
    lines = [titles, ["---"] * len(titles), *(astuple(each) for each in rows)]
    table = "".join(f"| {' | '.join(cells)} |".replace("  |", " |") + "\n" for cells in lines)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(head + table)
    unfinished.replace(path)


def count_slots(relocations: str, symbol: str) -> int:
    """How many slots readelf's list of relocations has for it."""
    names = (line.split()[4].partition("@")[0] for line in _import_lines(relocations))
    return sum(name == symbol for name in names)


def _import_lines(relocations: str) -> list[str]:
    kinds = ("R_X86_64_JUMP_SLO", "R_X86_64_GLOB_DAT", "R_AARCH64_JUMP_SL", "R_AARCH64_GLOB_DA")
    lines = [line for line in relocations.splitlines() if any(kind in line for kind in kinds)]
    return [line for line in lines if len(line.split()) > 4]


def find_slots(folder: Path) -> str:
    """The table's cell for the libraries in this folder."""

    def found(library: str, symbol: str) -> bool:
        done = subprocess.run(
            ["readelf", "--relocs", "--wide", str(folder / library)],
            check=True,
            capture_output=True,
            text=True,
        )
        return count_slots(done.stdout, symbol) == 1

    needed = sum(found("libc10_cuda.so", symbol) for symbol in NEEDED_SLOTS)
    figures = sum(found(library, NEEDED_SLOTS[-1]) for library in FIGURE_LIBRARIES)
    return f"{slots_text(needed)} + {figures}"


def count_tests(path: Path, row: Row) -> None:
    """Takes over what a JUnit file says, with the names of what failed, by file."""
    part = Part(name="tests/cuda", command=[])
    read_junit(path, part)
    row.passed, row.failed, row.skipped = (
        str(count) for count in (part.passed, len(part.failed), len(part.skipped))
    )
    files = collections.Counter(name.partition("[")[0].rpartition(".")[2] for name in part.failed)
    names = [f"{name} ({count})" if count > 1 else name for name, count in sorted(files.items())]
    reasons = sorted({entry.partition(": ")[2] for entry in part.skipped})
    said = [f"failed: {', '.join(names)}"] * bool(names)
    said += [f"skipped: {', '.join(reasons)}"] * bool(reasons)
    row.notes = _in_a_cell("; ".join(filter(None, [row.notes, *said])))


def _in_a_cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def make_row(options: argparse.Namespace) -> Row:
    """What there is to say of this version."""
    row = Row(torch=options.torch, date=time.strftime("%Y-%m-%d", time.gmtime()))
    row.notes = _in_a_cell(options.problem)
    if options.python:
        asked = subprocess.run(
            [options.python, "-c", _ASK], check=True, capture_output=True, text=True
        )
        about = json.loads(asked.stdout)
        row.cuda, row.python = about["cuda"], about["python"]
        row.import_slots = find_slots(Path(about["folder"]) / "lib")
    if options.junit:
        row.tests = options.tests
        count_tests(options.junit, row)
    return row


def main() -> None:
    """Writes the row and shows it; the exit status is 1 unless all is good with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--python", default="", help="the interpreter that has it")
    parser.add_argument("--tests", default="all", choices=["all", "quick"])
    parser.add_argument("--junit", type=Path)
    parser.add_argument("--problem", default="", help="why there are no tests")
    parser.add_argument("--command", required=True)
    options = parser.parse_args()
    row = make_row(options)
    write(options.table, row, options.command)
    print(f"torch {row.torch}: {' | '.join(astuple(row)[1:])}")
    raise SystemExit(0 if row.is_good else 1)


if __name__ == "__main__":
    main()
