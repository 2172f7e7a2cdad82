"""The month of weather at 37 stations in Brittany that ships with the library."""

from __future__ import annotations

from sparsemean.lab.datasets.find import Directory
from sparsemean.lab.datasets.stream import Stream
from sparsemean.lab.weather import load_weather


def load(directory: Directory | None = None) -> Stream:
    """Rounds are days, nodes are stations, coordinates are hourly temperature and rain.

    ``directory`` is not used; the library carries the data. See ``sparsemean.lab.weather`` for places and units.
    """
    weather = load_weather()
    return Stream("weather", weather.vectors, weather.stations, weather.attribution)
