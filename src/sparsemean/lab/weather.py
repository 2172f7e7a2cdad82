"""A real sensor network that ships with the library: a month of weather at 37 stations in Brittany.

Nodes are stations, rounds are days, and a node's vector holds that day's hourly temperature and rain. How the
file was made, and which measurements were left out, is told in ``docs/weather-data.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Weather:
    """January 2014, standardised per quantity over all stations and days.

    Coordinate j is ``quantities[j]`` at ``hours[j]`` o'clock, and in the producer's units (K, kg/m²) it reads
    ``vectors[..., j] * scales[j] + means[j]``.
    """

    vectors: npt.NDArray[np.float32]
    """(days, stations, coordinates)"""
    stations: tuple[str, ...]
    """The producer's station numbers; use them as node names."""
    names: tuple[str, ...]
    """Place names; the number again where the producer's table has none."""
    latitude: npt.NDArray[np.float64]
    """Degrees north, NaN where the producer's table has none."""
    longitude: npt.NDArray[np.float64]
    """Degrees east, NaN where the producer's table has none."""
    quantities: tuple[str, ...]
    """t, tx, tn: temperature of the hour, its maximum and minimum; rr1: rain. One entry per coordinate."""
    hours: npt.NDArray[np.int64]
    """Hour of the day, one entry per coordinate."""
    means: npt.NDArray[np.float64]
    """What standardising subtracted, one entry per coordinate."""
    scales: npt.NDArray[np.float64]
    """What standardising divided by, one entry per coordinate."""
    attribution: str
    """Show this wherever the data, or a figure made from it, is published."""


def load_weather() -> Weather:
    """Load the embedded month.

    >>> weather = load_weather()
    >>> weather.vectors.shape
    (31, 37, 89)
    >>> weather.names[0], weather.quantities[13], int(weather.hours[13])
    ('ILE-DE-BREHAT', 't', 13)
    >>> kelvin = weather.vectors[0, 0, 13] * weather.scales[13] + weather.means[13]
    >>> f"{kelvin - 273.15:.1f} °C"
    '11.2 °C'
    """
    source = files("sparsemean.lab") / "data" / "brittany_weather.npz"
    with as_file(source) as path, np.load(path, allow_pickle=False) as data:
        return Weather(
            vectors=data["vectors"],
            stations=tuple(data["stations"].tolist()),
            names=tuple(data["names"].tolist()),
            latitude=data["latitude"],
            longitude=data["longitude"],
            quantities=tuple(data["quantities"].tolist()),
            hours=data["hours"],
            means=data["means"],
            scales=data["scales"],
            attribution=str(data["attribution"]),
        )
