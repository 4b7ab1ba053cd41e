"""The import hook: it waits for torch, and leaves no trace of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.python.conftest import Run


def test_calls_back_after_the_import_and_once(run_python: Run) -> None:
    ended = run_python(
        """
        import importlib.util, sys
        from gpushare._torch.torch_import import when_torch_is_loaded
        when_torch_is_loaded(lambda: print("one", hasattr(sys.modules["torch"], "tensor")))
        when_torch_is_loaded(lambda: print("two"))
        assert "torch" not in sys.modules
        import torch
        import torch.nn
        print(type(torch.__loader__).__name__, type(torch.__spec__.loader).__name__)
        finders = [type(finder).__name__ for finder in sys.meta_path]
        print([name for name in finders if "Torch" in name])
        when_torch_is_loaded(lambda: print("at once"))
        """,
        disable="1",
    )
    assert ended.stdout.splitlines() == [
        "one True",
        "two",
        "SourceFileLoader SourceFileLoader",
        "[]",
        "at once",
    ]


def test_torch_that_was_looked_for_first_is_seen(run_python: Run) -> None:
    """Libraries look whether torch is there, and some take several attempts to import it."""
    ended = run_python(
        """
        import importlib.util, pkgutil, sys
        from gpushare._torch.torch_import import when_torch_is_loaded
        when_torch_is_loaded(lambda: print("one"))
        when_torch_is_loaded(lambda: print("two"))
        for _ in range(2):
            spec = importlib.util.find_spec("torch")
            print(spec.loader.get_filename() == spec.origin)
        assert "torch" not in sys.modules
        sys.modules["torch.version"] = None
        try:
            import torch
        except ImportError:
            print("failed")
        del sys.modules["torch.version"]
        import torch
        """,
        disable="1",
    )
    assert ended.stdout.splitlines() == ["True", "True", "failed", "one", "two"]


def test_without_torch_the_import_fails_as_ever(run_python: Run) -> None:
    ended = run_python(
        """
        import sys
        from gpushare._torch.torch_import import when_torch_is_loaded
        when_torch_is_loaded(lambda: print("called"))
        sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]
        try:
            import torch
        except ModuleNotFoundError as error:
            print(error.name)
        """,
        disable="1",
    )
    assert ended.stdout == "torch\n"
