"""The valid messages from which the strange ones are made: all that exist, and valid indeed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.hostile import inputs
from tests.hostile.peer import MESSAGES, Message
from tests.hostile.shared_box import as_stranger, shared_box

WIRE = Path(__file__).parents[2] / "csrc" / "wire"
UNNAMED_FIELDS = {"weight": {"weight"}, "ranks": {"rank", "ranks"}}
"""The fields of a visitor's functions that are not given a name."""
PARTS = {"settings": "JobSettings", "of": "Address", "changes": "Changes"}
"""The structs that have a list of their own, by the member that is one."""


def _types_of_jobs() -> dict[str, str]:
    """The type on the wire of each struct that JobMessage has."""
    text = (WIRE / "job_messages.h").read_text()
    kinds = r'struct (\w+) \{\s+static constexpr const char\* kType = "(\w+)"'
    types = dict(re.findall(kinds, text))
    alternatives = re.search(r"using JobMessage = std::variant<(.*?)>;", text, re.DOTALL)
    assert alternatives is not None
    return {name: types[name] for name in re.findall(r"\w+", alternatives[1])}


def _lists() -> dict[str, str]:
    """The body of each `list_fields`, by its struct."""
    text = (WIRE / "codec_fields.h").read_text()
    bodies = r"void list_fields\(V& v, Ref<V, (\w+)> \w+\) \{\n(.*?)^\}"
    return dict(re.findall(bodies, text, re.DOTALL | re.MULTILINE))


def _fields(struct: str, lists: dict[str, str]) -> set[str]:
    fields = set()
    for line in lists[struct].splitlines():
        if part := re.fullmatch(r"  list_fields\(v, \w+\.(\w+)\);", line):
            fields |= _fields(PARTS[part[1]], lists)
        elif named := re.fullmatch(r'  v\.\w+\("(\w+)", \w+\.\w+\);', line):
            fields.add(named[1])
        else:
            unnamed = re.match(r"  v\.(\w+)\(", line)
            assert unnamed is not None, line
            fields |= UNNAMED_FIELDS[unnamed[1]]
    return fields


def test_each_message_that_a_job_may_send_is_there_with_each_of_its_fields() -> None:
    lists = _lists()
    sent = {name: kind for name, kind in _types_of_jobs().items() if name in lists}
    wanted = {kind: _fields(name, lists) for name, kind in sent.items()}
    assert {kind: set(fields) for kind, fields in MESSAGES.items()} == wanted


def _answers(path: str, kind: str) -> list[Message]:
    """The coordinator's answers to an unchanged message, up to the end of the connection."""
    peer = inputs.peer_before(kind, path)
    assert peer.send(peer.message(kind)), kind
    # The coordinator answers in order, and either explains last or has ended the connection.
    peer.send(peer.message("explain"))
    answers = []
    while (answer := peer.receive()) is not None:
        answers.append(answer)
        if answer["type"] == "explained":
            break
    peer.close()
    return answers


def test_no_field_of_an_unchanged_message_is_refused() -> None:
    def attack() -> None:
        for kind in MESSAGES:
            for answer in _answers(box.path, kind):
                assert "field " not in str(answer), (kind, answer)
                assert "unknown message" not in str(answer), (kind, answer)

    with shared_box() as box:
        as_stranger(attack)
