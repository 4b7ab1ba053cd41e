"""What ``gpushare run`` puts at the front of PYTHONPATH; Python imports it before the script.

It turns gpushare's automatic mode on, starts the recorder of ``gpushare verify`` where asked, and
then runs the ``sitecustomize`` that this one hides. Nothing here may keep the user's program from
starting, unless GPUSHARE_REQUIRE says so.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_REQUIRED_BUT_MISSING = 3
"""The exit code of the command line for an unreachable coordinator."""


def _start() -> None:
    if os.environ.get("GPUSHARE_RECORD"):
        from gpushare._torch import recorder

        recorder.start(os.environ["GPUSHARE_RECORD"])
    if os.environ.get("GPUSHARE_RUN") == "1" and os.environ.get("GPUSHARE_DISABLE") != "1":
        from gpushare import auto

        auto.enable()


def _run_hidden_sitecustomize() -> None:
    # os.path, since pathlib costs each start of Python some milliseconds.
    own_folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != own_folder]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    # The import system takes the module of this name from sys.modules once this file has run.
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _report_failure(error: Exception) -> None:
    is_required = os.environ.get("GPUSHARE_REQUIRE") == "1"
    what_now = "GPUSHARE_REQUIRE=1 makes this fatal" if is_required else "it goes on unmanaged"
    sys.stderr.write(
        f"gpushare: cannot start in {sys.executable}: {type(error).__name__}: {error}. "
        f"Is torch-gpushare installed in this Python? {what_now}\n"
    )
    if is_required:
        sys.stderr.flush()
        # The module `site` goes on after an exception; not one line of the program may run.
        os._exit(_REQUIRED_BUT_MISSING)


try:
    _start()
except Exception as start_error:
    _report_failure(start_error)
_run_hidden_sitecustomize()
