"""What `import gpushare` does, and does not do, in processes of its own."""

from __future__ import annotations

import sys

import pytest


def test_importing_gpushare_imports_neither_torch_nor_anything_heavy(run_python):
    run_python(
        """
        import sys
        before = set(sys.modules)
        import gpushare
        heavy = {"torch", "typer", "rich", "numpy", "asyncio"}
        packaging = {"importlib.metadata", "email", "difflib"}
        assert not (heavy | packaging) & (set(sys.modules) - before)
        assert gpushare.__version__
        """,
    )


def test_unknown_names_are_attribute_errors():
    import gpushare

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gpushare.nothing  # noqa: B018


@pytest.mark.usefixtures("module_is_built")
@pytest.mark.parametrize("order", ["import gpushare, torch", "import torch, gpushare"])
def test_the_allocator_is_installed_whichever_comes_first(run_python, order):
    run_python(
        f"""
        {order}
        from gpushare import _native, stats
        assert _native.is_installed()
        x = torch.ones(1000)
        assert stats.memory_allocated() >= 4000
        """,
    )


@pytest.mark.usefixtures("module_is_built")
def test_torch_keeps_its_own_loader(run_python):
    run_python(
        """
        import gpushare, torch, pkgutil, importlib.machinery
        assert type(torch.__spec__.loader) is importlib.machinery.SourceFileLoader
        assert type(torch.__loader__) is importlib.machinery.SourceFileLoader
        assert pkgutil.get_data("torch", "py.typed") is not None
        """,
    )


def test_disabled_it_does_nothing_at_all(run_forked):
    run_forked(
        """
        import sys, gpushare, torch
        assert "gpushare._C" not in sys.modules
        model = torch.nn.Linear(1, 1)
        job = gpushare.register(model)
        assert not job.is_managed and not model._forward_pre_hooks
        with job.iteration():
            model(torch.ones(1, 1))
        job.step()
        assert job.active_seconds == 0.0
        assert gpushare.current() is job
        job.close()
        assert gpushare.current() is None
        """,
        disable="1",
    )


@pytest.mark.usefixtures("module_is_built")
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_of_multiprocessing_are_left_alone_until_they_make_a_module(run_python, method):
    run_python(
        f"""
        import multiprocessing
        import gpushare, torch
        model = torch.nn.Linear(2, 2)  # in the child too, when it imports this

        def child(queue):
            from gpushare import _native
            torch.ones(100)
            queue.put(_native.is_installed())
            torch.nn.Linear(2, 2)
            queue.put(_native.is_installed())

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            queue = context.SimpleQueue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            assert queue.get() is False
            assert queue.get() is True
            process.join()
        """,
    )


@pytest.mark.usefixtures("module_is_built")
def test_a_loaders_workers_are_left_alone(run_python):
    run_python(
        """
        import sys
        import torch
        import gpushare
        from torch.utils.data import DataLoader

        class Numbers:
            def __len__(self):
                return 4

            def __getitem__(self, index):
                torch.ones(100)
                from gpushare import _native
                return index + 10 * _native.is_installed()

        if __name__ == "__main__":
            loader = DataLoader(Numbers(), num_workers=1, multiprocessing_context="spawn")
            assert sorted(each.item() for each in loader) == [0, 1, 2, 3]
        """,
    )


@pytest.mark.usefixtures("module_is_built")
def test_a_module_for_another_torch_is_refused(run_forked):
    code = """
        import gpushare, torch
        import sys
        torch.__version__ = "1.99.0"
        from gpushare import _native
        try:
            _native.load()
        except gpushare.errors.GpushareError as error:
            print(error)
        assert "gpushare._C" not in sys.modules
        """
    said = run_forked(code, disable="1").stdout
    assert said.startswith("built for torch ")
    assert 'found 1.99. Have that torch here (pip install "torch==' in said
    assert "in gpushare's sources pip install --force-reinstall --no-deps ./)" in said


def test_a_missing_module_is_explained_and_torch_goes_on(run_forked):
    code = """
        import sys
        sys.modules["gpushare._C"] = None
        import gpushare, torch
        print(torch.ones(2).sum().item())
        """
    ended = run_forked(code)
    assert ended.stdout == "2.0\n"
    assert "gpushare: the compiled module" in ended.stderr
    assert "GPUSHARE_REQUIRE=1 makes this fatal" in ended.stderr
    ended = run_forked(code, require="1", fails=True)
    assert ended.returncode == 3
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.usefixtures("module_is_built")
def test_an_error_that_the_program_caught_does_not_decide_its_exit(run_forked):
    code = """
        import gpushare, torch
        try:
            gpushare.register(torch.nn.Linear(1, 1))
        except gpushare.errors.CoordinatorUnreachable:
            pass
        raise ValueError("my own")
        """
    ended = run_forked(code, require="1", fails=True)
    assert ended.returncode == 1
    assert ended.stderr.endswith("ValueError: my own\n")


BAD_SETTINGS = """
import gpushare, torch
model = torch.nn.Linear(1, 1)
job = gpushare.register(model)
with job.iteration():
    model(torch.ones(1, 1)).backward()
stats = job.stats()
print(job.is_managed, stats.iterations, stats.unmanaged_reason)
"""


def test_with_a_bad_setting_a_job_goes_on_unmanaged_and_says_so_once(run_forked, tmp_path):
    ended = run_forked(BAD_SETTINGS, weight="-1", socket=str(tmp_path / "sock"))
    assert ended.stdout == "False 0 gpushare is not installed in this process\n"
    assert ended.stderr == (
        "gpushare: GPUSHARE_WEIGHT: bad value '-1'; allowed: a finite number above 0. "
        "Training goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal\n"
    )
    assert not (tmp_path / "sock").exists()


def test_with_a_broken_file_too(run_forked, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[job\n")
    ended = run_forked(BAD_SETTINGS, config=str(file), socket=str(tmp_path / "sock"))
    assert ended.stdout == "False 0 gpushare is not installed in this process\n"
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"gpushare: {file}: ")


@pytest.mark.parametrize("is_in_file", [True, False])
def test_where_a_coordinator_is_required_a_bad_setting_is_fatal(run_forked, tmp_path, is_in_file):
    file = tmp_path / "config.toml"
    file.write_text("[job]\nrequire = true\n" if is_in_file else "")
    more = {} if is_in_file else {"require": "1"}
    ended = run_forked(BAD_SETTINGS, weight="-1", config=str(file), fails=True, **more)
    assert (ended.returncode, ended.stdout) == (3, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("gpushare: GPUSHARE_WEIGHT: bad value '-1'")
    assert line.endswith("GPUSHARE_REQUIRE=1 makes this fatal")


@pytest.mark.usefixtures("module_is_built")
def test_the_module_exports_nothing_but_its_init_function():
    import subprocess

    from tests.python.conftest import PACKAGE

    (path,) = PACKAGE.glob(f"_C.{sys.implementation.cache_tag}*.so")
    listed = subprocess.check_output(["nm", "-D", "--defined-only", str(path)], text=True)
    functions = {line.split()[2] for line in listed.splitlines() if " T " in line}
    assert functions == {"PyInit__C"}


@pytest.mark.usefixtures("module_is_built")
def _is_typed_dict(node) -> bool:
    return any(base.id == "TypedDict" for base in node.bases)


def test_the_module_is_what_its_description_says(run_forked):
    import ast

    from tests.python.conftest import PACKAGE

    described = set()
    for node in ast.parse((PACKAGE / "_C.pyi").read_text()).body:
        is_own_class = isinstance(node, ast.ClassDef) and not _is_typed_dict(node)
        if isinstance(node, ast.FunctionDef) or is_own_class:
            described.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            described.add(node.target.id)
    said = run_forked(
        "import torch, gpushare._C as native\n"
        "print(*[name for name in dir(native) if not name.startswith('__')])"
    )
    assert set(said.stdout.split()) == described


def test_the_other_project_of_our_name_is_named_where_the_module_is_missing(run_forked):
    code = """
        import sys
        sys.modules["gpushare._C"] = None
        from importlib import metadata
        metadata.version = lambda name: "0.1"
        import gpushare, torch
        """
    assert run_forked(code).stderr.startswith(
        'gpushare: this is the PyPI project "gpushare", not torch-gpushare: pip uninstall '
        "gpushare; then in torch-gpushare's sources pip install --force-reinstall --no-deps ./. "
    )
