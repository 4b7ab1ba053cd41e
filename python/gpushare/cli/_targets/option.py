"""The option that names a device, for commands that look at several."""

from __future__ import annotations

from typing import Annotated

import typer

DeviceOption = Annotated[
    str, typer.Option(help="Only this device's: cpu, cpu:1, cuda (all GPUs) or cuda:UUID.")
]
