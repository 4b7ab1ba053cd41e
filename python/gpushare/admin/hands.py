"""Carries out an installation step by step, and says each step; or says them only."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from gpushare.admin.files import Record, Tree, changed_lines
from gpushare.errors import GpushareError


class StepError(GpushareError):
    """A command of an installation failed."""


class Hands:
    """The only class that changes the machine."""

    def __init__(self, tree: Tree, *, is_dry: bool, is_for_here: bool) -> None:
        """Makes them.

        Args:
            tree: Where files are written.
            is_dry: Whether nothing is changed.
            is_for_here: Whether this machine is the one that the files are for. If not, commands
                are not run.
        """
        self._tree = tree
        self._is_dry = is_dry
        self.is_for_here = is_for_here

    def write(self, path: str, text: str, record: Record) -> bool:
        """Writes a file unless somebody else has changed it.

        Returns:
            Whether it changed.
        """
        before = self._tree.read(path)
        place = self._tree.at(path)
        if before == text:
            print(f"as it is  {place}")
            if path not in record.files and not self._is_dry:
                self._tree.write(path, text, record)
            return False
        if before is not None and not self._tree.is_own(path, record):
            print(f"kept      {place}, which was changed by hand; what would be different:")
            print(*(f"            {line}" for line in changed_lines(before, text)), sep="\n")
            return False
        if before is None:
            print(f"write     {place}")
            if self._is_dry:
                print(*(f"            {line}".rstrip() for line in text.splitlines()), sep="\n")
        else:
            print(f"change    {place}")
            print(*(f"            {line}" for line in changed_lines(before, text)), sep="\n")
        if not self._is_dry:
            self._tree.write(path, text, record)
        return True

    def remove(self, path: str, record: Record) -> None:
        """Removes a file unless somebody else has changed it."""
        place = self._tree.at(path)
        if not self._tree.has(path):
            print(f"is gone   {place}")
        elif not self._tree.is_own(path, record):
            print(f"kept      {place}, which was changed by hand")
            return
        else:
            print(f"remove    {place}")
            if not self._is_dry:
                self._tree.remove(path)
        record.files.pop(path, None)

    def save(self, record: Record) -> None:
        """Writes down what there is by now, for a later removal."""
        if not self._is_dry:
            self._tree.write_record(record)

    def finish_uninstall(self, record_path: str, record: Record) -> None:
        """Forgets the installation, with the folders that are empty now."""
        if not self._is_dry:
            self._tree.remove(record_path)
            self._tree.remove_empty_folders(record)

    def run(self, *command: str) -> bool:
        """Runs a command.

        Returns:
            Whether it ran.

        Raises:
            StepError: It failed.
        """
        text = shlex.join(command)
        print(f"{'run    ' if self.is_for_here else 'not run'}   {text}", flush=True)
        if self._is_dry or not self.is_for_here:
            return False
        ended = subprocess.run(command, check=False)
        if ended.returncode != 0:
            raise StepError(f"{text} ended with {ended.returncode}")
        return True


def systemd_runs() -> bool:
    """Tells whether systemd is this machine's service manager, as ``sd_booted(3)`` does."""
    return Path("/run/systemd/system").is_dir()
