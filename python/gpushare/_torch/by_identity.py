"""Values of objects that live, whatever the objects say of themselves.

A class of the program may make its objects equal to each other, or not hashable, as a dataclass
does. ``weakref``'s own dictionaries fail with those.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class ByIdentity(Generic[Key, Value]):
    """A dictionary by ``id()``, which forgets objects as they are freed."""

    def __init__(self) -> None:
        """Has none."""
        self._entries: dict[int, tuple[weakref.ref[Key], Value]] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        """Keeps the value for as long as the object lives."""
        identity, entries = id(key), self._entries
        # Nobody else has the number before the reference has called back.
        entries[identity] = (weakref.ref(key, lambda _: entries.pop(identity, None)), value)

    def get(self, key: Key) -> Value | None:
        """Returns the object's value, if it has one."""
        entry = self._entries.get(id(key))
        return None if entry is None else entry[1]

    def __contains__(self, key: Key) -> bool:
        """Tells whether a value is kept for this very object."""
        return id(key) in self._entries

    def __len__(self) -> int:
        """Returns how many objects there are."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        """Goes through the objects that live, as of now."""
        for reference, _ in list(self._entries.values()):
            key = reference()
            if key is not None:
                yield key
