"""The training jobs of the Salus paper's evaluation: what each keeps, needs, and how fast it is.

Known: the peak and the iterations of a job of about a minute, for each model and batch size, on
the paper's 16 GB GPU (tests/workloads.csv of the SymbioticLab/Salus repository; MLSys 2020).

Assumed: that such a job computes for 60 s, so an iteration takes 60 s over that number (its 60 to
130 s of wall time include the start); and what it keeps between iterations, which the table does
not say: 8 bytes a parameter (weight and momentum, each of 4), with the parameters that the models'
papers give. And how much of the device it uses: all of it with the batch of most images a second,
and with another as much as it gets fewer done. (So it says nothing of what even that batch leaves.)
"""

from __future__ import annotations

from typing import NamedTuple

SECONDS_OF_A_JOB = 60.0
_BYTES_A_PARAMETER = 8
_MIB = 1 << 20

_PARAMETERS_MILLION = {
    "vgg11": 132.9, "vgg16": 138.4, "vgg19": 143.7,
    "resnet50": 25.6, "resnet101": 44.5, "resnet152": 60.2,
    "googlenet": 7.0, "alexnet": 61.0, "overfeat": 145.9,
    "inception3": 23.8, "inception4": 42.7,
}  # fmt: skip

# (batch size, peak MB, iterations) of each model.
_TABLE = {
    "vgg11": ((25, 3710, 565), (50, 5088, 321), (100, 9203, 178)),
    "vgg16": ((25, 4317, 311), (50, 6183, 168), (100, 10445, 90)),
    "vgg19": ((25, 4463, 266), (50, 6359, 143), (100, 12024, 76)),
    "resnet50": ((25, 2116, 478), (50, 4008, 265), (75, 5915, 183)),
    "resnet101": ((25, 3238, 276), (50, 6106, 155), (75, 8988, 108)),
    "resnet152": ((25, 4563, 191), (50, 8637, 108), (75, 12726, 75)),
    "googlenet": ((25, 756, 1015), (50, 1411, 599), (100, 2534, 332)),
    "alexnet": ((25, 687, 2726), (50, 1155, 2067), (100, 1397, 1332)),
    "overfeat": ((25, 3255, 1199), (50, 3416, 951), (100, 6240, 617)),
    "inception3": ((25, 2500, 303), (50, 4775, 165), (100, 9379, 86)),
    "inception4": ((25, 4445, 147), (50, 8541, 81), (75, 12662, 55)),
}  # fmt: skip


class Model(NamedTuple):
    """A model with a batch size."""

    name: str
    persistent_mib: int
    peak_mib: int
    iteration_seconds: float
    utilisation: float


def _model(name: str, batch: int, peak_mb: int, iterations: int) -> Model:
    most_images = max(images * number for images, _, number in _TABLE[name])
    kept_bytes = _PARAMETERS_MILLION[name] * 1e6 * _BYTES_A_PARAMETER
    return Model(
        name=f"{name}_{batch}",
        persistent_mib=round(kept_bytes / _MIB),
        peak_mib=round(peak_mb * 1e6 / _MIB),
        iteration_seconds=SECONDS_OF_A_JOB / iterations,
        utilisation=batch * iterations / most_images,
    )


MODELS = tuple(_model(name, *row) for name, rows in _TABLE.items() for row in rows)
