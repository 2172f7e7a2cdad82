"""Make the weather data that ships with ``sparsemean.lab`` from the producer's archive.

    python scripts/make_weather.py MOLENE_DIR OUTPUT.npz

MOLENE_DIR holds ``RADOMEH.tar.gz`` (one CSV file per station) and ``weather_stations.csv`` (names and places).
The same input gives the same bytes. What is kept, and why, is told in ``docs/weather-data.md``.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
import tarfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

DAYS, HOURS = 31, 24
QUANTITIES = [
    "td", "t", "tx", "tn", "u", "ux", "un", "dd", "ff", "dxy", "fxy", "dxi", "fxi", "rr1", "t_10", "t_20", "t_50",
    "t_100", "vv", "etat_sol", "sss", "n", "insolh", "ray_glo01", "pres", "pmer",
]  # fmt: skip
ATTRIBUTION = (
    "Meteo-France, hourly data of the 55 land stations of the Large Molene zone, January 2014, "
    "files of 28 May 2014, Licence Ouverte"
)

Floats = npt.NDArray[np.float64]


def read_archive(path: Path) -> dict[str, Floats]:
    """Station → (day, hour, quantity), NaN where the producer wrote ``mq`` or left the hour out."""
    months = {}
    with tarfile.open(path) as archive:
        for member in archive:
            match = re.search(r"_(\d{8})\.txt$", member.name)
            file = archive.extractfile(member)
            if match and file:
                months[match[1]] = read_station(io.TextIOWrapper(file, encoding="ascii"))
    return dict(sorted(months.items()))


def read_station(file: io.TextIOWrapper) -> Floats:
    """One station's month as (day, hour, quantity)."""
    month = np.full((DAYS, HOURS, len(QUANTITIES)), np.nan)
    for row in csv.DictReader(file):
        if row["numer_sta"] == "EOF":
            break
        day, hour = int(row["date"][6:8]), int(row["date"][8:10])
        month[day - 1, hour] = [math.nan if row[name] == "mq" else float(row[name]) for name in QUANTITIES]
    return month


def read_places(path: Path) -> dict[str, tuple[str, float, float]]:
    """Station → (name, latitude, longitude) for the stations the producer's table knows."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["Numéro"]: (row["Nom"].strip(), degrees(row["Latitude"]), degrees(row["Longitude"]))
            for row in csv.DictReader(file)
        }


def degrees(text: str) -> float:
    """48°51'18N → 48.855; south and west are negative.

    >>> degrees("3°00'36W")
    -3.01
    """
    match = re.fullmatch(r"(\d+)°(\d+)'(\d+)([NSEW])", text)
    if not match:
        raise ValueError(f"not a latitude or longitude: {text!r}")
    whole, minutes, seconds = (int(part) for part in match.groups()[:3])
    return (3600 * whole + 60 * minutes + seconds) / (-3600 if match[4] in "SW" else 3600)


def mean_and_scale(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation, summed as integers so that every platform gets the same bits.

    The archive has at most two decimals, so hundredths are exact: with u = 100·x and N values
    mean = Σu / (100·N) and scale = √(N·Σu² − (Σu)²) / (100·N).
    """
    hundredths = [round(100 * value) for value in values.ravel().tolist()]
    count, total = len(hundredths), sum(hundredths)
    spread = count * sum(value * value for value in hundredths) - total * total
    return total / (100 * count), math.sqrt(spread) / (100 * count)


def make(source: Path, output: Path) -> None:
    """Choose nodes and coordinates by the two rules, standardise, write."""
    months = read_archive(source / "RADOMEH.tar.gz")
    places = read_places(source / "weather_stations.csv")

    temperature = QUANTITIES.index("t")
    stations = [station for station, month in months.items() if not np.isnan(month[..., temperature]).any()]
    network = np.stack([months[station] for station in stations])  # station, day, hour, quantity

    complete: npt.NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(network), axis=(0, 1))
    kept = [(q, hour) for q in range(len(QUANTITIES)) for hour in range(HOURS) if complete[hour, q]]
    moments = {q: mean_and_scale(network[:, :, complete[:, q], q]) for q, _ in kept}

    means, scales = np.array([moments[q] for q, _ in kept]).T
    raw = np.stack([network[:, :, hour, q].T for q, hour in kept], axis=-1)  # day, station, coordinate
    names, latitude, longitude = zip(*(places.get(s, (s, math.nan, math.nan)) for s in stations), strict=True)

    # NumPy stamps every member of the archive with 1980-01-01, so the bytes do not depend on the clock.
    np.savez_compressed(
        output,
        vectors=((raw - means) / scales).astype(np.float32),
        stations=np.array(stations),
        names=np.array(names),
        latitude=np.array(latitude),
        longitude=np.array(longitude),
        quantities=np.array([QUANTITIES[q] for q, _ in kept]),
        hours=np.array([hour for _, hour in kept], dtype=np.int64),
        means=means,
        scales=scales,
        attribution=np.array(ATTRIBUTION),
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
