"""The list of synchronisations names what is in the tree: seen here without a build."""

import importlib.util
import re
import sys

import pytest


@pytest.fixture
def listed(root, monkeypatch):
    path = root / "tests" / "cuda" / "synchronisation_list.py"
    spec = importlib.util.spec_from_file_location("synchronisation_list", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module.ALL


def test_each_line_is_in_its_file_once(root, listed):
    found = {one.name: (root / one.file).read_text().count(one.line) for one in listed}
    assert len(found) == len(listed), "two have one name"
    assert {name: times for name, times in found.items() if times != 1} == {}


def test_each_test_is_there(root, listed):
    cpp = "".join(path.read_text() for path in (root / "tests" / "cpp").rglob("*.cpp"))
    missing = []
    for test in {test for one in listed for test in one.tests}:
        if test.startswith("tests/"):
            path, _, name = test.partition("::")
            is_there = f"def {name}" in (root / path).read_text()
        else:
            suite, name = test.split()[1].split(".")
            is_there = re.search(rf"\({suite},\s*{name}\)", cpp)
        if not is_there:
            missing.append(test)
    assert missing == []
