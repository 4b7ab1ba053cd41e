"""Files that an installation writes, and removes unless somebody has changed them since."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare.errors import GpushareError

RECORD_PATH = "/var/lib/gpushare/installed.json"
_RECORD_VERSION = 1


class RecordError(GpushareError):
    """The record of what was installed cannot be used."""


class NoTextError(GpushareError):
    """A file that the installation should change holds no text."""


@dataclass
class Record:
    """What an installation has made, so that its removal takes that and nothing else."""

    files: dict[str, str] = field(default_factory=dict)
    """Their SHA-256, by path."""
    folders: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    """Those that have a unit, or had one that is not disabled yet."""
    users: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Returns it as it is written."""
        return json.dumps({"version": _RECORD_VERSION, **vars(self)}, indent=2) + "\n"


class Tree:
    """The machine's files, or a copy of them below a folder."""

    def __init__(self, root: str = "") -> None:
        """``root`` stands before each path; "" for the machine itself."""
        self._root = root.rstrip("/")

    def at(self, path: str) -> Path:
        """Returns where a path of the machine is."""
        return Path(f"{self._root}{path}")

    def read(self, path: str) -> str | None:
        """Returns a file's text; None if there is none.

        Raises:
            NoTextError: It is not UTF-8.
        """
        content = self._read_bytes(path)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError as error:
            raise NoTextError(f"{self.at(path)} is no text in UTF-8") from error

    def read_record(self) -> Record | None:
        """Returns what was installed; None if nothing was.

        Raises:
            RecordError: The record cannot be read.
            NoTextError: It is not UTF-8.
        """
        text = self.read(RECORD_PATH)
        if text is None:
            return None
        try:
            content: dict[str, Any] = json.loads(text)
            if content.pop("version") != _RECORD_VERSION:
                raise ValueError("of another version")
            _check_types(content)
            record = Record(**content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordError(
                f"{self.at(RECORD_PATH)} is no record of an installation: {error}"
            ) from error
        return record

    def has(self, path: str) -> bool:
        """Tells whether there is such a file."""
        return self.at(path).exists()

    def is_own(self, path: str, record: Record) -> bool:
        """Tells whether a file is as the installation left it."""
        content = self._read_bytes(path)
        return content is not None and record.files.get(path) == _hash(content)

    def write(self, path: str, text: str, record: Record) -> None:
        """Writes a file that everybody may read, and records it with the folders made for it."""
        self._make_folders(path, record)
        self._replace(path, text)
        record.files[path] = _hash(text.encode())

    def write_record(self, record: Record) -> None:
        """Writes the record itself."""
        self._make_folders(RECORD_PATH, record)
        self._replace(RECORD_PATH, record.text())

    def remove(self, path: str) -> None:
        """Removes a file."""
        self.at(path).unlink()

    def _read_bytes(self, path: str) -> bytes | None:
        try:
            return self.at(path).read_bytes()
        except FileNotFoundError:
            return None

    def _make_folders(self, path: str, record: Record) -> None:
        for folder in reversed(Path(path).parents):
            place = self.at(str(folder))
            if not place.is_dir():
                place.mkdir()
                place.chmod(0o755)  # whatever the umask
                record.folders.append(str(folder))

    def _replace(self, path: str, text: str) -> None:
        place = self.at(path)
        fresh = place.with_name(place.name + ".new")
        fresh.write_bytes(text.encode())
        fresh.chmod(0o644)
        fresh.replace(place)

    def remove_empty_folders(self, record: Record) -> None:
        """Removes those that the installation made and that hold nothing."""
        for folder in reversed(record.folders):
            place = self.at(folder)
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Yields "- old line" and "+ new line" for what differs."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    for line in list(lines)[2:]:
        if not line.startswith("@@"):
            yield f"{line[0]} {line[1:]}"


def _check_types(content: dict[str, Any]) -> None:
    for name, value in content.items():
        if not isinstance(value, dict if name == "files" else list):
            raise TypeError(f"{name} is of the wrong type")
        words = value.values() if isinstance(value, dict) else value
        if not all(isinstance(word, str) for word in words):
            raise TypeError(f"{name} holds something that is no text")


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
