import check_questions
import pytest


def test_no_question_of_the_scheduler_acts(root):
    assert check_questions.find_problems(root) == []


def test_the_questions_are_found(root):
    """A pattern that matches nothing would find nothing wrong."""
    asked = [
        name
        for path in check_questions.cpp_files(root, check_questions.FOLDER)
        for name, _ in check_questions._QUESTION.findall(path.read_text())
    ]
    assert len(set(asked)) > 60
    assert {"is_parked", "may_be_moved", "takes_turns", "fits_beside_suspended"} <= set(asked)


@pytest.mark.parametrize(
    "text",
    [
        "bool is_held(Step& step, const Lane& lane);",
        "bool may_grow(const Job& job,\n              Step& step) {",
        "std::optional<Nanos> gives_by(Table& table);",
        "inline bool waits_for_room(const Lane& lane, Job& job, RoomPool& pool) {",
        "  [[nodiscard]] static bool takes_turns(Device* device);",
    ],
)
def test_a_question_that_could_act_is_caught(small_tree, write, text):
    write("csrc/sched/serve/planted.cpp", f"// Planted.\n{text}\n")
    (problem,) = check_questions.find_problems(small_tree)
    assert problem.startswith("csrc/sched/serve/planted.cpp:2:")


@pytest.mark.parametrize(
    "text",
    [
        "bool is_held(const Table& table, const Lane& lane);",
        "bool keep_free(Step& step, Lane& lane) {",
        "  if (is_held(step, lane)) return;",
        "  return is_held(step.table(), lane) && step.now() > due;",
        "void set_suspended(Step& step, Job& job, bool is_suspended);",
        "  const bool is_last = lane->lease->along.empty();",
    ],
)
def test_other_text_passes(text):
    assert check_questions.problems_of("csrc/sched/serve/choose.cpp", text) == []
