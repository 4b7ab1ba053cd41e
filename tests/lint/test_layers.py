import check_layers
import pytest


def test_the_tree_keeps_to_the_table(root):
    assert check_layers.find_problems(root) == []


def test_the_table_has_every_layer_and_no_cycle(root):
    table = check_layers.read_table(root / "csrc" / "README.md")
    folders = {path.name for path in (root / "csrc").iterdir() if path.is_dir()}
    assert folders <= set(table)
    order: list[str] = []
    while len(order) < len(table):
        ready = [name for name, below in table.items() if below <= set(order)]
        added = [name for name in ready if name not in order]
        assert added, f"a cycle among {set(table) - set(order)}"
        order += added


@pytest.mark.parametrize(
    ("path", "include", "reason"),
    [
        # Memory and decisions never see each other.
        ("csrc/sched/table/lane.h", '"csrc/alloc/blocks/stats.h"', "`sched` may include only"),
        ("csrc/alloc/blocks/segment.cpp", '"csrc/sched/job/ready.h"', "`alloc` may include only"),
        ("csrc/base/units.h", '"csrc/vm/contract/vmm.h"', "`base` may include only"),
        ("csrc/ipc/socket.cpp", '"csrc/wire/messages.h"', "`ipc` may include only"),
        ("csrc/daemon/server/server.cpp", '"csrc/vm/contract/vmm.h"', "`daemon` may include only"),
        ("csrc/sched/policies/fifo.cpp", '"csrc/client/runtime.h"', "`sched` may include only"),
        ("csrc/alloc/blocks/arena.cpp", "<c10/core/Allocator.h>", "for `binding` only"),
        ("csrc/daemon/main.cpp", "<Python.h>", "for `binding` only"),
        ("csrc/sched/coordinator.cpp", "<chrono>", "no clock, thread or system call"),
        ("csrc/sched/coordinator.cpp", "<sys/mman.h>", "no clock, thread or system call"),
        ("csrc/wire/codec.cpp", '"csrc/base/clock.h"', "no clock, thread or system call"),
        ("csrc/vm/host/vmm.cpp", '"vmm.h"', "does not start at the repository's root"),
        (
            "csrc/vm/host/vmm.cpp",
            '"../base/units.h"',
            "does not start at the repository's root",
        ),
        ("csrc/misc/tools.h", "<string>", "no row for `misc`"),
    ],
)
def test_a_planted_include_is_caught(small_tree, write, path, include, reason):
    write(path, f"#pragma once\n\n#  include {include}\n")
    (problem,) = check_layers.find_problems(small_tree)
    assert problem.startswith(path)
    assert reason in problem


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("csrc/alloc/blocks/arena.cpp", '"csrc/vm/contract/vmm.h"'),
        ("csrc/alloc/blocks/arena.cpp", '"csrc/alloc/blocks/arena.h"'),
        ("csrc/client/link/connection.cpp", '"csrc/wire/messages.h"'),
        ("csrc/client/link/connection.cpp", "<sys/socket.h>"),
        ("csrc/binding/module.cpp", "<torch/extension.h>"),
    ],
)
def test_an_allowed_include_passes(small_tree, write, path, include):
    write(path, f"#include {include}\n")
    assert check_layers.find_problems(small_tree) == []


def test_a_library_may_link_only_what_its_layer_may_include(small_tree, write):
    write("CMakeLists.txt", "gs_layer(base)\ngs_layer(sched wire alloc base)\n")
    (problem,) = check_layers.find_problems(small_tree)
    assert "gs_layer(sched) links `alloc`" in problem


def test_a_lost_table_is_no_permission(small_tree, write):
    write("csrc/README.md", "# no table\n")
    assert check_layers.find_problems(small_tree) == ["csrc/README.md: no layer table found"]


FOLDERS = """# The folders of `sched`

| level | folder | what lives there | it may include |
| --- | --- | --- | --- |
| 1 | `job` | jobs | - |
| 1 | `plans` | plans | - |
| 2 | `table` | all | all below |
| 3 | `serve` | leases | table |
"""


def test_each_table_of_folders_has_the_folders_of_its_layer(root):
    for readme in (root / "csrc").glob("*/README.md"):
        listed = check_layers.read_folders(readme)
        if not listed:  # a layer may have folders without a table
            continue
        there = {path.name for path in readme.parent.iterdir() if path.is_dir()}
        assert set(listed) - {"."} == there, readme


@pytest.mark.parametrize(
    ("path", "include", "reason"),
    [
        ("csrc/sched/job/job.h", "csrc/sched/table/table.h", "`job` may include only itself"),
        ("csrc/sched/job/job.h", "csrc/sched/plans/quantum.h", "`job` may include only itself"),
        ("csrc/sched/serve/serve.h", "csrc/sched/job/job.h", "`serve` may include only table"),
        ("csrc/sched/serve/serve.h", "csrc/sched/coordinator.h", "`serve` may include only table"),
        ("csrc/sched/coordinator.h", "csrc/sched/attic/old.h", "no row for `attic`"),
        ("csrc/sched/attic/old.h", "csrc/sched/job/job.h", "no row for `attic`"),
    ],
)
def test_an_include_that_goes_up_is_caught(small_tree, write, path, include, reason):
    write("csrc/sched/README.md", FOLDERS)
    write(path, f'#include "{include}"\n')
    (problem,) = check_layers.find_problems(small_tree)
    assert problem.startswith(path)
    assert reason in problem


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("csrc/sched/table/table.h", "csrc/sched/job/job.h"),
        ("csrc/sched/table/table.h", "csrc/sched/table/lane.h"),
        ("csrc/sched/coordinator.h", "csrc/sched/serve/serve.h"),
        # Which files of a folder another layer uses is no matter of levels.
        ("csrc/sim/simulator.h", "csrc/sched/serve/serve.h"),
        # A layer without a table of folders may have folders.
        ("csrc/vm/held/held_calls.h", "csrc/vm/contract/vmm.h"),
    ],
)
def test_an_include_that_goes_down_passes(small_tree, write, path, include):
    write("csrc/sched/README.md", FOLDERS)
    write(path, f'#include "{include}"\n')
    assert check_layers.find_problems(small_tree) == []
