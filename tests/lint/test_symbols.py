import subprocess

import check_symbols


def test_the_module_exports_only_its_entry_point(root):
    assert check_symbols.find_problems(root) == []


def _compile_module(small_tree, write, text):
    write("module.cpp", text)
    (small_tree / "python/gpushare").mkdir(parents=True)
    library = small_tree / "python/gpushare/_C.so"
    command = ["g++", "-shared", "-fPIC", "module.cpp", "-o", str(library)]
    subprocess.run(command, cwd=small_tree, check=True)


def test_a_symbol_too_many_is_caught(small_tree, write):
    _compile_module(small_tree, write, 'extern "C" void PyInit__C() {}\nvoid leaked() {}\n')
    (problem,) = check_symbols.find_problems(small_tree)
    assert "leaked" in problem


def test_a_lost_entry_point_is_caught(small_tree, write):
    _compile_module(small_tree, write, "static void PyInit__C() {}\n")
    assert check_symbols.find_problems(small_tree) == ["_C.so: lacks PyInit__C"]


def test_a_module_that_is_not_built_is_no_pass(small_tree):
    (problem,) = check_symbols.find_problems(small_tree)
    assert "not built" in problem
