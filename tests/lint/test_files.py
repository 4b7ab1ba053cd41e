import check_files


def test_the_trees_files_are_small(root):
    assert check_files.find_problems(root) == []


def test_a_long_file_is_caught(small_tree, write):
    write("csrc/base/long.cpp", "\n" * 401)
    for i in range(3):
        write(f"csrc/base/short_{i}.cpp", "\n" * 400)
    problems = check_files.find_problems(small_tree)
    assert problems == [
        "csrc/base/long.cpp: 401 lines, at most 400",
        "the median C++ file has 400 lines, not under 150",
    ]


def test_the_limit_itself_is_allowed(small_tree, write):
    write("tests/cpp/base/long_test.cpp", "\n" * 400)
    write("csrc/base/a.cpp", "\n" * 149)
    write("csrc/base/b.cpp", "\n" * 10)
    assert check_files.find_problems(small_tree) == []


def test_a_character_outside_ascii_is_caught(small_tree, write):
    write("csrc/base/units.h", "// fine\n// 4 \u00b5s\n")
    assert check_files.find_problems(small_tree) == ["csrc/base/units.h:2: not ASCII"]


def test_a_folder_with_many_files_is_caught(small_tree, write):
    for i in range(25):
        write(f"python/gpushare/cli/command_{i}.py", "")
    assert check_files.find_problems(small_tree) == []
    write("python/gpushare/cli/one_more.py", "")
    assert check_files.find_problems(small_tree) == ["python/gpushare/cli: 26 files, at most 25"]
