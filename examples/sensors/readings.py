"""What the stations hold: the month of Brittany weather that ships with sparsemean, cut into rounds of a few days."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean.lab.weather import Weather, load_weather

QUANTITIES = ("t", "tx", "tn", "rr1")  # temperature, its maximum and minimum within the hour, rain: in the data's order


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings as ``weather`` standardises them: 0 is the month's average of the quantity, 1 its spread."""

    weather: Weather
    vectors: npt.NDArray[np.float64]
    """(rounds, stations, coordinates); a coordinate is a quantity at an hour of one of the round's days."""
    stations: tuple[str, ...]
    days: int

    @property
    def blocks(self) -> list[int]:
        """How many coordinates each of the QUANTITIES has."""
        return [self.weather.quantities.count(quantity) * self.days for quantity in QUANTITIES]

    def scale(self, quantity: str) -> float:
        """One spread in °C or mm."""
        return float(self.weather.scales[self.weather.quantities.index(quantity)])

    def part(self, vectors: npt.NDArray[np.float64], quantity: str) -> npt.NDArray[np.float64]:
        """The quantity's coordinates, the last axis, hour after hour."""
        at = QUANTITIES.index(quantity)
        start = sum(self.blocks[:at])
        chosen = vectors[..., start : start + self.blocks[at]]
        by_day = chosen.reshape(*chosen.shape[:-1], -1, self.days)
        return np.swapaxes(by_day, -1, -2).reshape(chosen.shape)

    def celsius(self, mean: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Temperature, hour after hour."""
        return self.part(mean, "t") * self.scale("t") + float(self.weather.means[0]) - 273.15


def load(rounds: int, days: int, stations: int) -> Readings:
    """The first rounds of so many days, at the first stations."""
    weather = load_weather()
    month, known, width = weather.vectors.shape
    if not (rounds >= 1 and days >= 1 and rounds * days <= month):
        sys.exit(f"the data has {month} days, not {rounds} rounds of {days}; choose fewer --rounds or --days")
    if not 2 <= stations <= known:
        sys.exit(f"--stations goes from 2 to {known}, got {stations}")
    cut = weather.vectors[: rounds * days, :stations].astype(np.float64)
    vectors = cut.reshape(rounds, days, stations, width).transpose(0, 2, 3, 1).reshape(rounds, stations, width * days)
    return Readings(weather, vectors, weather.stations[:stations], days)
