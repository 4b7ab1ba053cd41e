"""A callback for the Trainer of transformers, which knows how long the training is.

    trainer = Trainer(model, arguments, callbacks=[GpushareCallback(priority="opportunistic")], ...)

``gpushare run`` needs no callback: the Trainer calls its model and steps its optimizer, so the
boundaries are right, those of evaluation and accumulation too. The callback adds how many
iterations there will be, by which the policy ``srtf`` goes, settings in the program, and the job's
figures in the Trainer's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from gpushare.integrations.trainer_job import TrainerJob, figures

if TYPE_CHECKING:
    import torch

    from gpushare.job import Job


class GpushareCallback(TrainerCallback):
    """Makes this process a job where training begins. For evaluation alone there is `register`."""

    def __init__(self, *, log_figures: bool = False, **settings: Any) -> None:
        """Does nothing yet.

        Args:
            log_figures: Whether the Trainer's log has the job's waits and moved bytes: its history,
                and what callbacks that stand behind this one report.
            settings: Keywords of ``gpushare.register``, such as ``priority``. They count for
                nothing where the program has registered a job itself.
        """
        self._log_figures = log_figures
        self._jobs = TrainerJob(settings)
        self._job: Job | None = None

    def on_train_begin(
        self,
        _arguments: TrainingArguments,
        state: TrainerState,
        _control: TrainerControl,
        *,
        model: torch.nn.Module,
        **_others: Any,
    ) -> None:
        """The length of the training is known."""
        self._job = self._jobs.get(model, state.max_steps)

    def on_log(
        self,
        _arguments: TrainingArguments,
        state: TrainerState,
        _control: TrainerControl,
        logs: dict[str, float],
        **_others: Any,
    ) -> None:
        """A line of the log is written."""
        if self._log_figures and self._job is not None:
            of_job = figures(self._job)
            logs.update(of_job)
            state.log_history[-1].update(of_job)
