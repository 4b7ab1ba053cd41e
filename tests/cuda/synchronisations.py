"""Takes each synchronisation away once, and says whether the test that is named for it fails.

Run by hand, from the repository's root, with the Python of a CUDA torch (half an hour the first
time)::

    python -m tests.cuda.synchronisations [--write docs/notes/cuda_synchronisations.md] [NAME...]

It works on a copy of the tree, below build/, which it keeps: the next run builds little.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.cuda.synchronisation_list import ALL, Synchronisation

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "synchronisations"
CPP = TREE / "build" / "cpp"
CUDA = TREE / "build" / "cuda"
TEST_SECONDS = 300

TITLE = "# Synchronisations of the CUDA path"
TEXT = (
    "Each of these was taken out of the source once, alone, and the test that is named for it was "
    'run: "seen" says that it failed. Written by `python -m tests.cuda.synchronisations --write`; '
    "`tests/cuda/synchronisation_list.py` is the list. Without them a GPU would give a rare wrong "
    "number; the fakes (`tests/cpp/support/vm_fake_cuda_driver.h`, `tests/fakecuda`) give a "
    "certain one."
)
TABLE = "| where | what | without it | test | |\n| --- | --- | --- | --- | --- |\n"


@dataclass(frozen=True)
class Row:
    """What came of one of them."""

    of: Synchronisation
    test: str
    outcome: str

    def text(self) -> str:
        """Its line of the table."""
        of = self.of
        test = self.test.removeprefix("tests/cuda/")
        return f"| `{of.file}` | {of.name} | {of.guards} | `{test}` | {self.outcome} |\n"


def _run(*command: str | Path) -> bool:
    words = [str(word) for word in command]
    # Objects of other copies of the tree serve this one.
    env = {"CCACHE_NOHASHDIR": "1"} | os.environ | {"CCACHE_BASEDIR": str(TREE)}
    done = subprocess.run(words, cwd=TREE, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        sys.stderr.write(done.stdout[-3000:] + done.stderr[-3000:])
    return done.returncode == 0


def _copy_tree() -> None:
    """Only what differs, so that ninja sees no change where there is none."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().rstrip("\0").split("\0"):
        source, copy = ROOT / name, TREE / name
        if copy.exists() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)


def _configure() -> None:
    common = ("cmake", "-S", TREE, "-G", "Ninja")
    tests = ("-DGS_BUILD_MODULE=OFF", "-DGS_BUILD_TESTS=ON", "-DGS_EXPENSIVE_CHECKS=ON")
    module = ("-DGS_BUILD_FAKE_CUDA=ON", f"-DPython_EXECUTABLE={sys.executable}")
    _must(_run(*common, "-B", CPP, *tests, "-DCMAKE_BUILD_TYPE=Debug"))
    _must(_run(*common, "-B", CUDA, *module, "-DCMAKE_BUILD_TYPE=Release"))


def _must(is_done: bool) -> None:
    if not is_done:
        raise SystemExit("the tree does not build as it is")


def _build(test: str) -> bool:
    """What this test needs."""
    if not _is_of_python(test):
        return _run("ninja", "-C", CPP, "-j2", test.split(maxsplit=1)[0])
    package = CUDA / "python"
    shutil.rmtree(package / "gpushare", ignore_errors=True)
    shutil.copytree(TREE / "python" / "gpushare", package / "gpushare")
    is_built = _run("ninja", "-C", CUDA, "-j2")
    return is_built and _run("cmake", "--install", CUDA, "--prefix", package)


def _is_of_python(test: str) -> bool:
    return test.startswith("tests/")


def _passes(test: str) -> bool:
    if not _is_of_python(test):
        program, name = test.split()
        command = [str(CPP / "tests" / "cpp" / program), f"--gtest_filter={name}"]
    else:
        command = [sys.executable, "-m", "pytest", "-x", "-q", test]
    try:
        done = subprocess.run(
            command, cwd=TREE, capture_output=True, text=True, check=False, timeout=TEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    if "0 tests from" in done.stdout or done.returncode in {4, 5}:
        raise SystemExit(f"there is no test {test}")
    return done.returncode == 0


def _try_without(one: Synchronisation, test: str) -> str:
    path = TREE / one.file
    whole = path.read_text()
    if whole.count(one.line) != 1:
        raise SystemExit(f"{one.file} has {whole.count(one.line)} times: {one.line}")
    path.write_text(whole.replace(one.line, one.instead))
    try:
        if not _build(test):
            return "DOES NOT BUILD"
        return "NOT SEEN" if _passes(test) else "seen"
    finally:
        path.write_text(whole)


def main() -> None:
    """Prints the table, and writes it if told to; fails if something is not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all without")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    chosen = [s for s in ALL if not arguments.names or any(n in s.name for n in arguments.names)]
    _copy_tree()
    _configure()
    tries = [(one, test) for one in chosen for test in one.tests]
    for test in dict.fromkeys(test for _, test in tries):
        _must(_build(test))
        if not _passes(test):
            raise SystemExit(f"{test} fails as it is")
    rows = []
    for one, test in tries:
        rows.append(Row(one, test, _try_without(one, test)))
        print(rows[-1].text(), end="", flush=True)
    if arguments.write is not None:
        text = "\n\n".join((TITLE, "\n".join(textwrap.wrap(TEXT, 140)), TABLE))
        arguments.write.write_text(text + "".join(row.text() for row in rows))
    if any(row.outcome != "seen" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
