"""The embedded weather data is what its documentation says, and can be made again."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sparsemean.lab.weather import Weather, load_weather

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_weather.py"


@pytest.fixture(scope="module")
def weather() -> Weather:
    return load_weather()


def test_rounds_are_days_nodes_are_stations_and_every_axis_is_labelled(weather: Weather) -> None:
    days, nodes, coordinates = weather.vectors.shape
    assert (days, nodes, coordinates) == (31, 37, 89)
    assert len(weather.stations) == len(weather.names) == len(weather.latitude) == len(weather.longitude) == nodes
    assert len(weather.quantities) == len(weather.hours) == len(weather.means) == len(weather.scales) == coordinates


def test_labels_are_unique(weather: Weather) -> None:
    assert len(set(weather.stations)) == len(weather.stations)
    assert len(set(zip(weather.quantities, weather.hours.tolist(), strict=True))) == len(weather.quantities)


def test_no_value_is_missing(weather: Weather) -> None:
    assert weather.vectors.dtype == np.float32
    assert np.isfinite(weather.vectors).all()


def test_every_quantity_is_standardised_over_network_and_month(weather: Weather) -> None:
    for quantity in set(weather.quantities):
        values = weather.vectors[..., np.array(weather.quantities) == quantity].astype(np.float64)
        assert values.mean() == pytest.approx(0, abs=1e-6)
        assert values.var() == pytest.approx(1, abs=1e-6)


def test_standardising_can_be_undone_to_the_published_decimals(weather: Weather) -> None:
    hundredths = 100 * (weather.vectors * weather.scales + weather.means)
    np.testing.assert_allclose(hundredths, np.round(hundredths), atol=1e-3)


def test_the_maximum_of_an_hour_is_not_below_its_temperature_nor_the_minimum_above(weather: Weather) -> None:
    kelvin = np.round(weather.vectors * weather.scales + weather.means, 2)
    labels = zip(weather.quantities, weather.hours.tolist(), strict=True)
    measured = {label: kelvin[..., j] for j, label in enumerate(labels)}
    for hour in set(range(24)) - {14}:
        assert (measured["tx", hour] >= measured["t", hour]).all()
        assert (measured["tn", hour] <= measured["t", hour]).all()


def test_the_known_places_lie_in_brittany(weather: Weather) -> None:
    known = ~np.isnan(weather.latitude)
    assert (known == ~np.isnan(weather.longitude)).all()
    assert known.sum() == 32
    assert ((weather.latitude[known] >= 47) & (weather.latitude[known] <= 49)).all()
    assert ((weather.longitude[known] >= -6) & (weather.longitude[known] <= -2)).all()


def test_the_attribution_names_producer_date_and_licence(weather: Weather) -> None:
    for demanded in ("Meteo-France", "28 May 2014", "Licence Ouverte"):
        assert demanded in weather.attribution


def test_the_script_makes_the_shipped_file_byte_for_byte(data_dir: Path, tmp_path: Path) -> None:
    again = tmp_path / "weather.npz"
    subprocess.run([sys.executable, SCRIPT, data_dir / "molene", again], check=True)
    assert again.read_bytes() == (files("sparsemean.lab") / "data" / "brittany_weather.npz").read_bytes()
