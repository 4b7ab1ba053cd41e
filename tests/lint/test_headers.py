import json

import check_headers


def test_each_header_compiles_alone(root):
    assert check_headers.find_problems(root) == []


def test_a_header_that_needs_another_one_is_caught(small_tree, write):
    write("csrc/base/good.h", "#pragma once\n#include <string>\nstd::string name();\n")
    write("csrc/base/bad.h", "#pragma once\nstd::string name();\n")
    (problem,) = check_headers.find_problems(small_tree)
    assert problem.startswith("csrc/base/bad.h: does not compile alone")
    assert "std" in problem


def test_a_change_below_a_header_has_it_compiled_again(small_tree, write):
    write("csrc/base/below.h", "#pragma once\n#include <string>\n")
    write("csrc/vm/above.h", '#pragma once\n#include "csrc/base/below.h"\nstd::string name();\n')
    assert check_headers.find_problems(small_tree) == []
    assert len(json.loads((small_tree / "build/headers-checked.json").read_text())) == 2
    write("csrc/base/below.h", "#pragma once\n")
    (problem,) = check_headers.find_problems(small_tree)
    assert problem.startswith("csrc/vm/above.h")


def test_only_what_no_source_begins_with_is_compiled(small_tree, write):
    bad = "#pragma once\nstd::string name();\n"
    write("csrc/base/first.h", bad)
    write("csrc/base/first.cpp", '#include "csrc/base/first.h"\n')
    write("csrc/base/second.h", bad)
    write("csrc/base/second.cpp", '#include <string>\n\n#include "csrc/base/second.h"\n')
    (problem,) = check_headers.find_problems(small_tree)
    assert problem.startswith("csrc/base/second.h")
