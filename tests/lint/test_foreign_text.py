import check_foreign_text

LOG = "csrc/base/log.cpp"


def test_all_text_of_others_is_made_printable(root):
    assert check_foreign_text.find_problems(root) == []


def test_a_place_that_lets_text_through_is_caught(small_tree, write):
    write(LOG, "void write() { log(printable(text)); }\n")
    write("csrc/wire/new.cpp", "auto name = object.get_ref<const std::string&>();\n")
    write("csrc/daemon/new.cpp", 'open_file(pid, "cmdline");\nreturn printable(text);\n')
    (problem,) = check_foreign_text.find_problems(small_tree)
    assert problem.startswith("csrc/wire/new.cpp:1: ")


def test_a_log_that_lets_lines_through_is_caught(small_tree, write):
    write(LOG, "void write() { log(text); }\n")
    (problem,) = check_foreign_text.find_problems(small_tree)
    assert problem.startswith(LOG)
