"""The modules of the package import each other in no circle."""

import check_python_rooms


def test_no_circle(root):
    assert check_python_rooms.find_problems(root) == []


def test_a_circle_is_found_inside_functions_and_not_for_types(tmp_path):
    package = tmp_path / "python" / "gpushare"
    (package / "_room").mkdir(parents=True)
    (package / "a.py").write_text("from gpushare._room import b\n")
    (package / "_room" / "b.py").write_text("def f():\n    from gpushare import c\n")
    (package / "c.py").write_text("if TYPE_CHECKING:\n    from gpushare import a\n")
    assert check_python_rooms.find_problems(tmp_path) == []
    (package / "c.py").write_text("import gpushare.a\n")
    problems = check_python_rooms.find_problems(tmp_path)
    assert "gpushare.a -> gpushare._room.b -> gpushare.c -> gpushare.a" in problems
