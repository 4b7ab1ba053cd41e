import check_terms
import pytest


def test_the_tree_uses_the_glossarys_words(root):
    assert check_terms.find_problems(root) == []


@pytest.mark.parametrize("word", sorted(check_terms.REFUSED))
def test_a_refused_word_is_caught_in_any_spelling(word):
    for text in (word, word.upper(), f"num_{word}s", f"{word.title()}ed"):
        (problem,) = check_terms.problems_of(
            "csrc/alloc/blocks/arena.h", f"ok\nint x;  // {text}\n"
        )
        assert problem.startswith("csrc/alloc/blocks/arena.h:2:")
        assert check_terms.REFUSED[word] in problem


@pytest.mark.parametrize(
    "text",
    ["one compare-and-swap", "Compare and swap", "std::swap(a, b);", "a.swap(b);", "SwapPss: 0 kB"],
)
def test_another_use_of_the_same_letters_passes(text):
    assert check_terms.problems_of("csrc/alloc/blocks/arena.h", text) == []


def test_the_readme_may_say_swap_and_offload_once():
    text = "Others call it swap or offload.\n"
    assert check_terms.problems_of("README.md", text) == []
    assert len(check_terms.problems_of("README.md", text + text)) == 2
    assert len(check_terms.problems_of("docs/README.md", text)) == 2
