"""Beijing's air: 12 stations, hourly from March 2013 to February 2017.

A round is a day. Only days on which all stations have all 24 hours of all chosen quantities are kept, and nothing is
filled in; so two rounds that follow each other need not be consecutive days.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.entry import DatasetEntry, Download, File
from sparsemean.lab.datasets.find import Directory, contents, places
from sparsemean.lab.datasets.stream import Stream, standardised

MEASURED = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
QUANTITIES = ("PM2.5", "PM10", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
"""Dust and weather. Every gas costs many days: with all six pollutants 67 complete ones remain."""

FILES = {
    "Aotizhongxin": (2_835_916, "a94fbcfc71708b6ffdc033360163d91efb7f675e496f6b5860929aa96b96351b"),
    "Changping": (2_722_295, "a2e21402a6d95fb7043f87959e6e3dcbecb957aac356a6f8028a85b047c772e7"),
    "Dingling": (2_675_856, "3d8dff81f18a80d9f455876a785642bffe1e9b9924ec1e6b7ce8cca790432eeb"),
    "Dongsi": (2_636_684, "9c0020214425e5ee2a64d42f97a1f632e1d8f6b53ad50edd85a686cc7999f27e"),
    "Guanyuan": (2_695_860, "59390fee3b032597b387491f5230e7edb90a8558e30217ebd6d9befbe669fbf9"),
    "Gucheng": (2_654_625, "10ae48801ea55869fee56a48b885fb1127859c130551888d71673f34216ba951"),
    "Huairou": (2_641_027, "812dcbe848b3ba2c2d25731064797bff803c46eb0c602156a1fa044df136dc26"),
    "Nongzhanguan": (2_839_705, "572cf87b65ef543cd55d3a711b28474def224a46b0ec3fc8add8aaf13b67a487"),
    "Shunyi": (2_620_654, "520b59e4ead3b0cfe7f1ed673e30275de8441e999db6f413d5172d2277b8c15a"),
    "Tiantan": (2_655_061, "0743e34799cf1ee36195b73321b91baa5625276532e7263c588f68cdef3b4daa"),
    "Wanliu": (2_659_544, "0b1a6d754a07f0def2f55434ddfa3870dcd0063b7f766a6f66b6c11bb05a377a"),
    "Wanshouxigong": (2_871_076, "ab1d6a356d6997a45f6d657ad47de1e05a4a08d4a7015b38a329a90665ab74d0"),
}

ENTRY = DatasetEntry(
    name="beijing",
    folder="beijing-air-quality",
    files=tuple(
        File(f"PRSA_Data_{station}_20130301-20170228.csv", size, sha256) for station, (size, sha256) in FILES.items()
    ),
    page="https://archive.ics.uci.edu/dataset/501/beijing+multi+site+air+quality+data",
    licence="CC BY 4.0",
    attribution=(
        "Chen, Beijing Multi-Site Air Quality, UCI Machine Learning Repository, 2017, doi 10.24432/C5RK5G, CC BY 4.0; "
        "complete days of some quantities, standardised"
    ),
    # UCI offers one archive, whose hash is not published; here are its single files.
    base_url=(
        "https://raw.githubusercontent.com/Peiris94-dev/Beijing-Multi-Site-Air-Quality-Analysis/"
        "0aa46c055fcca7da49ebac9329435ffe674b74c3"
    ),
    downloads=tuple(
        Download(f"PRSA_Data_{station}_20130301-20170228.csv", sha256) for station, (_, sha256) in FILES.items()
    ),
)


def load(directory: Directory | None = None, quantities: Sequence[str] = QUANTITIES) -> Stream:
    """Rounds are complete days, nodes are stations, coordinates are 24 hours of each quantity in turn.

    Every quantity is standardised over all kept days, stations and hours.
    """
    if not quantities or len(set(quantities)) != len(quantities) or not set(quantities) <= set(MEASURED):
        raise InvalidInput(f"quantities are some of {', '.join(MEASURED)}, each once; got {tuple(quantities)}")
    stations = [
        station_days(content.decode("ascii"), quantities, name)
        for name, content in contents(ENTRY, places(directory)).items()
    ]
    vectors = standardised(complete_days(stations), axis=2)
    return Stream(ENTRY.name, vectors.reshape(*vectors.shape[:2], -1), tuple(FILES), ENTRY.attribution)


def station_days(text: str, quantities: Sequence[str], name: str) -> Doubles:
    """One station's (day, quantity, hour), NaN where the file says NA."""
    rows = csv.reader(io.StringIO(text, newline=""))
    header = next(rows, [])
    hour, columns = header.index("hour"), [header.index(quantity) for quantity in quantities]
    values = []
    for i, row in enumerate(rows):
        if int(row[hour]) != i % 24:
            raise InvalidInput(f"{name}: line {i + 2} is of hour {row[hour]}, expected {i % 24}")
        values.append([math.nan if row[column] == "NA" else float(row[column]) for column in columns])
    if not values or len(values) % 24:
        raise InvalidInput(f"{name} has {len(values)} hours, which are no whole days")
    return np.array(values).reshape(-1, 24, len(columns)).transpose(0, 2, 1)


def complete_days(stations: Sequence[Doubles]) -> Doubles:
    """(day, station, quantity, hour) of the days on which nothing is missing anywhere."""
    days = np.stack(stations, axis=1)
    complete = days[np.isfinite(days).all(axis=(1, 2, 3))]
    if not len(complete):
        raise InvalidInput("on no day do all stations have all of these quantities; choose fewer")
    return complete
