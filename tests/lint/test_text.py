import subprocess

import check_text
import pytest


@pytest.fixture
def repository(small_tree):
    subprocess.run(["git", "init", "-q"], cwd=small_tree, check=True)
    return small_tree


def test_the_trees_text_is_plain(root):
    assert check_text.find_problems(root) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a \nb\n", "a.md:1: blanks at the end of the line"),
        ("a\nb", "a.md: no newline at its end"),
        ("a\n\n", "a.md: empty lines at its end"),
        ("a\n" + "<" * 7 + " HEAD\n", "a.md:2: a mark of a merge"),
        ("a\n" + "=" * 7 + "\n", "a.md:2: a mark of a merge"),
        ("a" * 500_000 + "\n", "a.md: 500001 bytes, at most 500000"),
    ],
)
def test_a_blemish_is_caught(repository, write, text, problem):
    write("a.md", text)
    assert check_text.find_problems(repository) == [problem]


def test_plain_text_passes(repository, write):
    write("a.md", "a\n\nb\n")
    write("empty", "")
    assert check_text.find_problems(repository) == []
