"""What the callbacks of trainers have in common."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.integrations.trainer_job import TrainerJob


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"prio": "interactive"}, TypeError, "unexpected keyword argument 'prio'"),
        ({"iterations": 5}, TypeError, "multiple values"),
        ({"priority": "urgent"}, ValueError, "priority: 'urgent'; allowed: guaranteed"),
        ({"memory_limit": "2XB"}, ValueError, "memory_limit: '2XB'; allowed: a size"),
    ],
)
def test_a_wrong_setting_is_said_before_training(
    settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        TrainerJob(settings)


def test_right_settings_are_taken() -> None:
    TrainerJob({"priority": "opportunistic", "memory_limit": "2GiB", "deadline": 0.05, "name": "a"})
