"""A callback for Lightning's Trainer, which makes each batch of a fit an iteration.

    trainer = L.Trainer(callbacks=[GpushareCallback(priority="opportunistic")])

``gpushare run`` needs no callback: it sees calls of modules and steps of optimizers. But a
LightningModule is mostly not called itself; its steps call one module after the other. An
evaluation batch then ends at the first of them. Here it ends where Lightning says so. The callback
also knows how many iterations there will be, and can write the job's figures to the loggers.

Under ``gpushare run`` Lightning adds the callback by itself, through an entry point.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gpushare.integrations.trainer_job import TrainerJob, figures

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.utilities.exceptions import MisconfigurationException
except ImportError:
    from pytorch_lightning import Callback, LightningModule, Trainer
    from pytorch_lightning.utilities.exceptions import MisconfigurationException

if TYPE_CHECKING:
    from gpushare._torch.blocks import Iteration
    from gpushare.job import Job


class GpushareCallback(Callback):
    """Makes this process a job with the first batch, and each batch an iteration."""

    def __init__(self, *, log_figures: bool = False, **settings: Any) -> None:
        """Does nothing yet.

        Args:
            log_figures: Whether the trainer's loggers get the job's waits and moved bytes, each
                ``log_every_n_steps``.
            settings: Keywords of ``gpushare.register``, such as ``priority``. They count for
                nothing where the program has registered a job itself.
        """
        self._log_figures = log_figures
        self._jobs = TrainerJob(settings)
        self._job: Job | None = None
        self._iteration: Iteration | None = None
        self._num_batches = 0
        """Of the training iteration that runs."""
        self._step = 0
        """The trainer's global step where it began."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The length of the fit is known.

        Not before: Lightning loads the training data to know it, and a program that draws random
        numbers meanwhile would draw other ones than without gpushare.
        """
        if self._is_first(trainer):
            self._job = self._jobs.get(pl_module, _optimizer_steps(trainer))

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, *_batch: Any
    ) -> None:
        """An iteration begins, unless this batch's gradients are added to those of the last one."""
        if self._iteration is None:
            self._begin(trainer, pl_module)
            self._num_batches, self._step = 0, trainer.global_step

    def on_train_batch_end(self, trainer: Trainer, _module: LightningModule, *_batch: Any) -> None:
        """The iteration ends, if an optimizer has stepped or will not step in this window."""
        self._num_batches += 1
        has_stepped = trainer.global_step != self._step
        if has_stepped or self._num_batches >= trainer.accumulate_grad_batches:
            self._end()
        is_due = has_stepped and trainer.global_step % trainer.log_every_n_steps == 0
        if self._log_figures and is_due and self._job is not None:
            for logger in trainer.loggers:
                logger.log_metrics(figures(self._job), step=trainer.global_step)

    def on_train_epoch_end(self, _trainer: Trainer, _module: LightningModule) -> None:
        """The last window of an epoch may be shorter."""
        self._end()

    def on_exception(
        self, _trainer: Trainer, _module: LightningModule, exception: BaseException
    ) -> None:
        """The lease is given back at once: the program may handle the exception."""
        self._end(exception)

    def _evaluation_begins(
        self, trainer: Trainer, pl_module: LightningModule, *_batch: Any
    ) -> None:
        self._end()  # a validation inside a window of accumulation
        self._begin(trainer, pl_module)

    def _evaluation_ends(self, _trainer: Trainer, _module: LightningModule, *_batch: Any) -> None:
        self._end()

    on_validation_batch_start = on_test_batch_start = on_predict_batch_start = _evaluation_begins
    on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _evaluation_ends

    def _is_first(self, trainer: Trainer) -> bool:
        """Tells whether this is the one to act, where the entry point has added another one."""
        return next(each for each in trainer.callbacks if type(each) is type(self)) is self

    def _begin(self, trainer: Trainer, model: LightningModule) -> None:
        if not self._is_first(trainer):
            return
        self._job = self._jobs.get(model)
        iteration = self._job.iteration()
        iteration.__enter__()
        self._iteration = iteration

    def _end(self, error: BaseException | None = None) -> None:
        iteration, self._iteration = self._iteration, None
        if iteration is not None:
            iteration.__exit__(type(error) if error else None, error, None)


def _optimizer_steps(trainer: Trainer) -> float:
    """Returns how many steps the fit will make; 0 if Lightning cannot tell."""
    try:
        return float(trainer.estimated_stepping_batches)
    except MisconfigurationException:
        return 0  # the number of batches in a step changes from epoch to epoch


def callbacks() -> list[Callback]:
    """What Lightning adds to each trainer: the callback under ``gpushare run``, else nothing."""
    is_run = os.environ.get("GPUSHARE_RUN") == "1" and os.environ.get("GPUSHARE_DISABLE") != "1"
    return [GpushareCallback()] if is_run else []
