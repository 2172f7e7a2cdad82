"""Los-loop: traffic speed at 207 highway detectors in Los Angeles, every 5 minutes, 1 to 7 March 2012.

A round is a day by default: 7 rounds of 288 numbers. The authors of the set filled its gaps by linear interpolation.
"""

from __future__ import annotations

import io

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.entry import DatasetEntry, Download, File
from sparsemean.lab.datasets.find import Directory, contents, places
from sparsemean.lab.datasets.stream import Stream, standardised

DAY = 24 * 12
SPEED = File("los_speed.csv", 3_402_125, "7b732d86ae32b2930595becba28aff39dacbfb2197e250fc0332e1744ce2cbf4")

ENTRY = DatasetEntry(
    name="los-loop",
    folder="los-loop",
    files=(SPEED,),
    page="https://github.com/lehaifeng/T-GCN",
    licence="MIT on the copy; the agency behind the detectors states none",
    attribution=(
        "Los Angeles County highway detectors (Jagadish et al. 2014), METR-LA (Li, Yu, Shahabi, Liu, ICLR 2018), "
        "the week cut by Zhao et al., T-GCN, IEEE T-ITS 2019"
    ),
    base_url="https://raw.githubusercontent.com/lehaifeng/T-GCN/219a2346f5bf68d54d91a948e7a41a08f9edc46b/data",
    downloads=(Download(SPEED.name, SPEED.sha256),),
)


def load(directory: Directory | None = None, steps: int = DAY) -> Stream:
    """Rounds are spans of ``steps`` × 5 minutes (288: days, 12: hours), nodes are detectors, coordinates are steps.

    Speeds are standardised over all detectors and times.
    """
    content = contents(ENTRY, places(directory))[SPEED.name]
    header, _, table = content.decode("ascii").partition("\n")
    speeds = np.loadtxt(io.StringIO(table), delimiter=",", ndmin=2)  # time, detector
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1 or len(speeds) % steps:
        raise InvalidInput(f"steps must divide the {len(speeds)} times of the week, got {steps!r}; 288 is a day")
    rounds = speeds.reshape(-1, steps, speeds.shape[1]).transpose(0, 2, 1)
    vectors = standardised(rounds[..., np.newaxis], axis=-1)[..., 0]
    return Stream(ENTRY.name, np.ascontiguousarray(vectors), tuple(header.strip().split(",")), ENTRY.attribution)
