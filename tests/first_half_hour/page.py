"""A page of the documents, followed to the letter: its files are written, its commands are run."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.documents import ROOT, Block, blocks

PATIENCE_SECONDS = 200.0
_FILE = re.compile(r"# (\w+\.py)\n")


class Page:
    """The sections of a page."""

    def __init__(self, name: str) -> None:
        """`name`: below docs, as "how_to/sweep.md"."""
        text = (ROOT / "docs" / name).read_text()
        parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
        self._sections = dict(zip(parts[1::2], parts[2::2], strict=True))

    def blocks(self, section: str) -> list[Block]:
        """The code blocks of the section whose title begins so, such as "3."."""
        (text,) = [text for title, text in self._sections.items() if title.startswith(section)]
        return list(blocks(text))


class Shell:
    """A shell in a folder of its own, as a person has it; a command that fails ends it."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], prefix: tuple[str, ...] = ()
    ) -> None:
        """`prefix`: what stands before the shell's command, to start it elsewhere."""
        self._folder = folder
        self._process = subprocess.Popen(
            [*prefix, "bash", "-euo", "pipefail"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._num_steps = 0
        self.screen = ""
        """All that was on the screen, also of jobs in the background."""

    def follow(self, page: Page, section: str) -> str:
        """Does what a section says; returns what was on the screen meanwhile.

        A Python block that begins with the name of a file is saved, and each block of commands is
        run.
        """
        shown = ""
        for block in page.blocks(section):
            named = _FILE.match(block.text)
            if block.language == "python" and named is not None:
                (self._folder / named[1]).write_text(block.text)
            elif block.language == "sh":
                shown += self.run(block.text)
        return shown

    def run(self, commands: str) -> str:
        """Runs commands; returns what is on the screen until they are done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._num_steps += 1
        step = self._folder / f"step-{self._num_steps}.sh"
        step.write_text(commands)
        end = f"--- end of step {self._num_steps}"
        # A page's commands read from the keyboard, and not what this shell is to do next.
        self._process.stdin.write(f". {step} </dev/null; echo '{end}'\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line.strip() == end:
                return "".join(lines)
            lines.append(line)
            self.screen += line
        raise AssertionError(f"a command failed:\n{commands}\n{''.join(lines)}")

    def run_until(self, command: str, *, says: str) -> str:
        """Runs a command until it says something; what it says then."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            shown = self.run(f"{command} || true\n")
            if re.search(says, shown):
                return shown
            assert time.monotonic() < ends, shown
            time.sleep(0.5)

    def close(self) -> None:
        """Ends the shell; what it has started in the background is waited for."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
