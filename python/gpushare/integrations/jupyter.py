"""``%load_ext gpushare``: a notebook's kernel is a job that uses the device while a cell runs.

A cell begins with the wait for a lease, which brings the kernel's memory back. Its end gives the
lease back, and from then on other jobs may take the memory's room. In a cell that trains, the
boundaries are those of a script: other jobs run between two of its iterations.

The wait stands in a transformer of the cell's syntax tree and not in an event of IPython: only a
transformer can keep a cell from running after Ctrl-C. An event counts cells that run inside cells.

What this does not do: code that runs outside cells, as a widget's callback or a thread of the
user's, waits for a lease only where it calls the cell's model.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import InputRejected, UsageError

from gpushare import _install, _native, auto
from gpushare._settings.devices import CPU
from gpushare._torch import immovable
from gpushare.errors import GpushareError
from gpushare.integrations.cell_models import CellModels

if TYPE_CHECKING:
    import torch

    from gpushare.job import Job

MAGIC = "gpushare"
_PRIORITY = "interactive"
"""A person waits for each cell: after a second at most a job of the class "normal" is asked."""
_loaded: Notebook | None = None


def load(shell: Any) -> None:
    """Makes the kernel of this IPython shell a job, from its first cell with torch on."""
    global _loaded
    if os.environ.get("GPUSHARE_DISABLE") == "1":
        print("gpushare: GPUSHARE_DISABLE=1: this kernel runs without gpushare")
        return
    if _loaded is None:
        _loaded = Notebook(shell)
        _loaded.begin()


def unload() -> None:
    """Ends the kernel's job."""
    global _loaded
    if _loaded is not None:
        _loaded.end()
        _loaded = None


class CellRefused(InputRejected):
    """The cell does not run. IPython shows one line of it."""

    def _render_traceback_(self) -> list[str]:
        return [f"gpushare: {self}; the cell has not run"]


class Notebook(ast.NodeTransformer):
    """The cells of one kernel."""

    def __init__(self, shell: Any) -> None:
        """Does nothing yet; ``shell`` is IPython's."""
        self._shell = shell
        self._models = CellModels(self._watch)
        self._job: Job | None = None
        """The job that was registered here; it may have been closed since."""
        self._depth = 0
        """How many cells run, one inside the other."""
        self._is_using = False
        """Whether the outermost one has asked for the device."""

    def begin(self) -> None:
        """Puts everything in place."""
        self._job = auto.exchange(self._models)
        self._shell.events.register("pre_execute", self._cell_begins)
        self._shell.events.register("post_execute", self._cell_ended)
        self._shell.ast_transformers.append(self)
        self._shell.register_magic_function(self._magic, "line", MAGIC)

    def end(self) -> None:
        """Takes everything away."""
        self._shell.events.unregister("pre_execute", self._cell_begins)
        self._shell.events.unregister("post_execute", self._cell_ended)
        if self in self._shell.ast_transformers:
            self._shell.ast_transformers.remove(self)
        self._shell.magics_manager.magics["line"].pop(MAGIC, None)
        self._models.stop()
        if self._job is not None:
            self._job.close()

    def visit(self, node: ast.AST) -> ast.AST:
        """IPython is about to run this cell.

        Raises:
            CellRefused: Ctrl-C has ended the wait for the device, or there is no coordinator, and
                GPUSHARE_REQUIRE=1: the cell does not run.
        """
        if self._is_using or not _native.is_installed() or not uses_device(node):
            return node
        self._is_using = True
        try:
            self._use_device()
        except KeyboardInterrupt:
            raise CellRefused("interrupted while it waited for the device") from None
        except GpushareError as error:
            raise CellRefused(str(error)) from None
        except Exception as error:
            # Memory does not fit. The cell may be what frees some, so it runs.
            print(f"{error}\ngpushare: the cell runs without the device")
        return node

    def _cell_begins(self) -> None:
        self._depth += 1

    def _cell_ended(self) -> None:
        # No beginning is said of an empty cell.
        self._depth = max(0, self._depth - 1)
        if self._depth > 0:
            return
        self._is_using = False
        if _native.is_installed():
            give_back(may_move=can_use_moved_memory())

    def _use_device(self) -> None:
        from gpushare.job import current

        if self._job is None and current() is None:
            self._register(None)
        self._models.begin_cell()
        job = current()
        # Without memory there is nothing to bring back; the first iteration asks for the lease.
        if job is not None and job.number and has_memory(job):
            _native.load().begin_iteration()

    def _watch(self, model: torch.nn.Module) -> None:
        """A cell has called this model. A job that the user registered has a model already."""
        from gpushare.job import current

        job = current()
        if job is None and self._job is None:
            self._register(model)
        elif job is not None and job is self._job:
            job.watch(model)
            if job.number:
                immovable.say_immovable(model, [], _native.load().reserved_range())

    def _register(self, model: torch.nn.Module | None) -> None:
        from gpushare.job import register

        config = _native.settings()
        is_default = config.priority == type(config).priority
        self._job = register(
            model,
            name=config.name or notebook_name(self._shell),
            priority=_PRIORITY if is_default else None,
        )

    def _magic(self, line: str) -> None:
        """Show this kernel's job; `%gpushare park` gives the device back and lets memory leave."""
        from gpushare.integrations.kernel_status import describe
        from gpushare.job import current

        words = line.split()
        if words not in ([], ["park"]):
            raise UsageError(f"%gpushare {line}: say %gpushare, or %gpushare park")
        job = current()
        if words and job is not None and job.is_managed:
            give_back(may_move=True)
            print("gpushare: parked: the memory leaves as soon as another job needs the room")
        print(describe(had_job=self._job is not None))


def has_memory(job: Job) -> bool:
    """Tells whether the job has tensors, on the device or in host memory."""
    stats = job.stats()
    return stats.live_bytes + stats.outside_bytes + stats.spilled_bytes > 0


def give_back(*, may_move: bool) -> None:
    """Ends the iteration that runs, and gives the lease back.

    Args:
        may_move: Whether the memory may leave the device until the next iteration.
    """
    from gpushare.job import current

    job = current()
    if job is None or not job.number:
        return
    native = _native.load()
    native.end_iteration("explicit", False)
    if may_move:
        job.park()
    else:
        native.close_lease("explicit")


def can_use_moved_memory() -> bool:
    """Tells whether a tensor can be used while its memory is away: on a CPU, and on most GPUs.

    Where it cannot, showing a variable between two cells would end the kernel.
    """
    if _native.device() == CPU:
        return True
    is_allowed = _native.settings().reachable != "off"
    return is_allowed and _install.can_reach(_native.cuda_index())


def notebook_name(shell: Any) -> str:
    """Returns the notebook's name without its ending, as far as the front end tells it."""
    path = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME") or ""
    name = Path(str(path)).stem
    return name if name and name.isprintable() and not name.isdecimal() else "notebook"


def uses_device(cell: ast.AST) -> bool:
    """Tells whether a cell is to have the device, and all memory, before its first line runs.

    A cell of ``%gpushare`` and commands of the shell looks at jobs, and is to move no memory.
    Behind a ``%gpushare park`` the cell has said that it works without the device.
    """
    for statement in getattr(cell, "body", []):
        words = _magic_of(statement)
        if words == (MAGIC, "park"):
            return False
        if words[:1] not in {(MAGIC,), ("!",)}:
            return True
    return False


def _magic_of(statement: ast.stmt) -> tuple[str, ...]:
    """A line magic's name and argument, ("!",) for a command of the shell; () for other code.

    IPython has made calls of its shell's methods of them.
    """
    value = getattr(statement, "value", None)
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return ()
    if ast.unparse(value.func.value) != "get_ipython()":
        return ()
    texts = tuple(str(each.value) for each in value.args if isinstance(each, ast.Constant))
    if value.func.attr in {"system", "getoutput"}:
        return ("!",)
    if value.func.attr == "run_cell_magic" and texts[:1] in {("bash",), ("sh",)}:
        return ("!",)
    return texts if value.func.attr == "run_line_magic" else ()
