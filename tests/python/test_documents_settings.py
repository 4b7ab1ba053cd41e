"""Settings, keys and policies that documents name are ones that something reads."""

from __future__ import annotations

import re
from pathlib import Path

from gpushare._settings.config import load
from gpushare._settings.config_notes import COORDINATORS_KEYS, config_notes
from gpushare._settings.settings import POLICIES, SETTINGS
from tests.support.documents import ROOT, blocks, calls, command_lines, documents

# The changelog also names what was removed.
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in documents()
    if path.name != "CHANGELOG.md"
}
_VARIABLE = re.compile(r"\bGPUSHARE_[A-Z_]+[A-Z]\b")
_KEY = re.compile(r"`((?:coordinator|host|accounts|log)\.(?!cpp)[a-z_]+)`")
_ASSIGNED = re.compile(r"\b(GPUSHARE_[A-Z_]+[A-Z])=([^\s`'\"(),;]+)")
KEYS = {each.key for each in SETTINGS} | COORDINATORS_KEYS
VARIABLES = {each.variable: each for each in SETTINGS}
FIELDS = {"docs/metrics.md"}
"""Names fields of `gpushare status --json` in the same way."""
WRONG = {"docs/exit_codes.md"}
"""Shows values that are refused."""


def _read_somewhere() -> set[str]:
    folders = ("python/gpushare", "csrc", "tools", "scripts", "tests", "setup.py", "Makefile")
    found: set[str] = set()
    for name in folders:
        there = ROOT / name
        for path in there.rglob("*") if there.is_dir() else [there]:
            if path.suffix in {".py", ".cpp", ".h", ".sh", ""} and path.is_file():
                found |= set(_VARIABLE.findall(path.read_text(errors="replace")))
    return found


def test_each_variable_is_read_somewhere() -> None:
    named = {name for text in TEXTS.values() for name in _VARIABLE.findall(text)}
    assert named >= set(VARIABLES)
    assert named - set(VARIABLES) <= _read_somewhere()


def test_each_key_is_one_that_something_reads() -> None:
    wrong = {
        f"{path}: {key}"
        for path, text in TEXTS.items()
        for key in _KEY.findall(text)
        if key not in KEYS and path not in FIELDS
    }
    assert wrong == set()


def test_each_value_of_a_variable_is_one_that_it_takes() -> None:
    wrong = []
    checked = 0
    for path, text in TEXTS.items():
        for name, value in _ASSIGNED.findall(text):
            setting = VARIABLES.get(name)
            if setting is None or value.strip(".").isupper() or "$" in value or path in WRONG:
                continue
            checked += 1
            try:
                setting.parse(value.rstrip(".:"))
            except (ValueError, TypeError) as error:
                wrong.append(f"{path}: {name}={value}: {error}")
    assert wrong == []
    assert checked > 20


def test_each_file_of_settings_is_read_without_a_note(tmp_path: Path) -> None:
    files = 0
    for path, text in TEXTS.items():
        for block in blocks(text):
            if block.language == "toml":
                files += 1
                file = tmp_path / "config.toml"
                file.write_text(block.text)
                environment = {"GPUSHARE_CONFIG": str(file)}
                load(environment)
                assert config_notes(environment) == [], path
    assert files >= 3


def test_each_policy_is_there() -> None:
    named = {
        words[2]
        for text in TEXTS.values()
        for line in command_lines(text)
        for words in calls(line, "gpushare")
        if words[1:2] == ["policy"] and len(words) > 2 and words[2].islower()
    }
    assert named
    assert named <= set(POLICIES)


def test_the_figures_of_the_tuning_page_follow_from_its_formula_and_the_codes_defaults() -> None:
    header = (ROOT / "csrc/sched/plans/quantum.h").read_text()
    options = (ROOT / "csrc/sched/job/coordinator_options.h").read_text()
    page = TEXTS["docs/guide/tuning.md"]
    bound = float(re.findall(r"kMostLoss = ([\d.]+)", header)[0])
    loss = float(re.findall(r"switch_loss = ([\d.]+)", options)[0])
    shortest = int(re.findall(r"min_quantum = millis\((\d+)\)", options)[0]) / 1000
    longest = int(re.findall(r"max_wait = seconds\((\d+)\)", options)[0])
    assert "kUrgentWait = seconds(1)" in header
    assert "Q = min( Q, 1 s / M )" in re.sub(" +", " ", page)
    assert f"max(switch_loss, {bound})" in page
    for line in (f"| `switch_loss` | {loss} |", f"| `max_wait` | {longest} s |"):
        assert line in page
    assert f"| `min_quantum` | {1000 * shortest:.0f} ms |" in page
    units = {"ms": 0.001, "s": 1.0}
    rows = re.findall(r"^\| (\d+) (m?s) \| ([\d.]+) (m?s), .*\| ([\d.]+) % \|$", page, re.MULTILINE)
    assert len(rows) >= 4
    for stall_text, stall_unit, quantum_text, unit, lost in rows:
        stall = int(stall_text) * units[stall_unit]
        most = max(longest, stall * (1 - bound) / bound)
        quantum = min(max(stall * (1 - loss) / loss, shortest), most)
        assert float(quantum_text) * units[unit] == round(quantum, 3)
        assert float(lost) == round(100 * stall / (stall + quantum), 1)


def test_each_sample_that_is_named_is_there() -> None:
    pattern = re.compile(r"\b(\d{4}-\d\d-\d\d-[\w-]+)\.json")
    named = {name for text in TEXTS.values() for name in pattern.findall(text)}
    assert len(named) >= 4
    there = {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")}
    assert named <= there
