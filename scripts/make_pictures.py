"""Draw the pictures of the README and the documentation from real runs.

    python scripts/make_pictures.py [name …]        # all of them, a minute; into docs/pictures

Every payload goes through the real bytes. Data are the weather that ships with the package, scikit-learn's digits and
Gaussian vectors; seeds are fixed, so that the same library draws the same picture.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sparsemean as sm
from sparsemean.lab.byte_budget import finest_eden
from sparsemean.lab.experiments import Setting, run_setting
from sparsemean.lab.report.figure.style import style_of
from sparsemean.lab.weather import load_weather
from sparsemean.schemes import scheme_name
from sparsemean.wire.values import value_name

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
INK, BAND = "#111827", "#c7d2fe"
LOOK: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e7eaef",
    "axes.edgecolor": "#8b95a3",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "font.size": 9,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "sparsemean",  # the same picture is the same file
}
Doubles = npt.NDArray[np.float64]


def draw(axes: Axes, scheme: str, x: Any, y: Any, **look: Any) -> None:
    """One line, in the colour that the scheme has in all reports."""
    style = style_of(scheme)
    given: dict[str, Any] = {"color": style.light, "label": style.label, "lw": 1.6, **look}
    axes.plot(x, y, **given)


def played(name: str, vectors: Doubles, bytes: int, values: str = "float32") -> list[sm.Estimate]:
    """All rounds with the named scheme, in as many bytes a payload."""
    dim = vectors.shape[-1]
    if name == "auto":
        return list(sm.simulate(sm.Run(sm.named("auto", bytes=bytes), dim, seed=1), vectors))
    run = sm.Run.for_bytes(scheme_name(name), dim, bytes=bytes, seed=1, values=value_name(values))
    return list(sm.simulate(run, vectors))


def errors_of(estimates: list[sm.Estimate], vectors: Doubles) -> Doubles:
    """Squared error of each round."""
    means = vectors.mean(axis=1)
    return np.array([np.sum((estimate.mean - mean) ** 2) for estimate, mean in zip(estimates, means, strict=True)])


def overview() -> Figure:
    """A day of weather from 100 bytes a station, and the error of a month with several schemes."""
    weather = load_weather()
    x = weather.vectors.astype(float)
    schemes = {
        "rand-k": ("float32", "Rand-k"),
        "rand-k-spatial-avg": ("float32", "Rand-k-Spatial (Avg)"),
        "rand-k-balanced-hybrid": ("int8", "Balanced draws,\nhybrid memory, int8"),
        "identity": (finest_eden(x.shape[-1], 100), "Whole vectors,\nthree bits a value"),
        "auto": ("", "Auto"),
    }
    told = {name: played(name, x, 100, values) for name, (values, _) in schemes.items()}
    scale = np.mean(np.sum(x.mean(axis=1) ** 2, axis=1))
    error = {name: float(np.mean(errors_of(estimates, x)) / scale) for name, estimates in told.items()}
    hourly = np.flatnonzero(np.array(weather.quantities) == "t")
    day, kelvin, zero = 20, weather.scales[0], weather.means[0] - 273.15
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.1, 1])
    for name in ("rand-k", "rand-k-spatial-avg", "auto"):
        draw(left, name, range(24), zero + kelvin * told[name][day].mean[hourly], label=schemes[name][1])
    exact = x[day].mean(axis=0)[hourly]
    left.plot(range(24), zero + kelvin * exact, color=INK, ls="--", lw=1.2, label="Exact mean")
    left.set(title="Mean temperature of 37 stations on one day", xlabel="hour", ylabel="°C")
    left.legend(ncols=2, loc="upper left")
    left.set_ylim(top=left.get_ylim()[1] + 0.35 * np.ptp(left.get_ylim()))
    for row, name in enumerate(sorted(error, key=error.__getitem__, reverse=True)):
        right.barh(schemes[name][1], error[name], color=style_of(name).light, height=0.6)
        right.text(error[name] * 1.2, row, f"{error[name]:.2g}", va="center")
    right.set(title="A month, 100 bytes a day instead of 356", xscale="log", xlim=(3e-4, 2))
    right.set_xlabel("squared error relative to that of answering 0")
    right.grid(axis="y", visible=False)
    return figure


def correlation() -> Figure:
    """Figure 2a of the paper: exact error and measured rounds against how similar nodes are."""
    n, d, k, rounds = 10, 100, 10, 300
    rng = np.random.default_rng(0)
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.subplots()
    kinds = {"rand-k": "one", "rand-k-spatial-avg": "avg", "rand-k-spatial-max": "max", "rand-k-balanced": "one"}
    for name, weighting in kinds.items():
        slots = n if "balanced" in name else None
        ratios = np.linspace(-1, n - 1, 101)
        # R1 + R2 = ‖Σx‖², so at R1 = n the error over ‖x‖² follows from the ratio alone.
        exact = [sm.theory.spatial_mse(n, n * ratio, n, k / d, weighting, slots=slots) for ratio in ratios]
        draw(axes, name, ratios, exact)
        for similarity in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0):
            x = np.sqrt(similarity) * rng.normal(size=d) + np.sqrt(1 - similarity) * rng.normal(size=(n, d))
            x *= np.sqrt(n / np.sum(x**2))
            r1, r2 = sm.theory.correlation(x)
            vectors = np.broadcast_to(x, (rounds, n, d))
            run = sm.Run(sm.named(scheme_name(name), k=k), d, seed=2)
            measured = errors_of(list(sm.simulate(run, vectors)), vectors)
            draw(axes, name, [r2 / r1], [measured.mean()], label="", marker="o", ms=4, lw=0)
    axes.set(title="n = 10 nodes, a tenth of 100 coordinates: lines exact, dots 300 rounds each", ylim=(0, 1.5))
    axes.set(xlabel="R2/R1: −1 cancel, 0 unrelated, 9 equal", ylabel="squared error over ‖x‖²")
    axes.legend(loc="upper right")
    return figure


def memory() -> Figure:
    """Power iteration on digits: what spatial weights, memories and epochs do round by round."""
    names = ("rand-k", "rand-k-spatial-avg", "rand-k-temporal", "rand-k-hybrid", "rand-k-epochs-hybrid")
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, split in zip(figure.subplots(1, 2, sharey=True), ("iid", "non-iid"), strict=True):
        for name in names:
            setting = Setting("memory", "power-iteration", "digits", name, share=0.1, nodes=40, rounds=30, split=split)
            rows = run_setting(setting)
            draw(axes, name, [row["round"] for row in rows], [row["mse"] for row in rows])
        axes.set(title=f"Power iteration, 40 nodes, {split}", xlabel="round", yscale="log", ylim=(1e-9, 3))
    figure.axes[0].set_ylabel("squared error of the mean")
    figure.axes[0].legend(loc="lower left")
    return figure


def own_error() -> Figure:
    """What the server says of its error, day by day, and the error that it cannot see."""
    x = load_weather().vectors.astype(float)
    estimates = played("rand-k-balanced-hybrid", x, 100, "int8")
    truth = errors_of(estimates, x)
    days = np.arange(1, len(x) + 1)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    low, high = np.array([estimate.actual_error_interval for estimate in estimates], float).T
    axes.vlines(days, low, high, color=BAND, lw=6, label="95 % interval")
    stated = np.array([estimate.error for estimate in estimates], float)
    axes.plot(days, stated, color="#0d2ab3", lw=1.2, label="stated: expected error")
    axes.plot(days, truth, "o", color=INK, ms=4, label="true error of the round")
    axes.set(title="The server's own error, without any ground truth", xlabel="day", yscale="log")
    axes.set_ylabel("squared error")
    axes.legend(ncols=3, loc="upper left")
    axes.set_ylim(top=axes.get_ylim()[1] * 3)
    return figure


def auto() -> Figure:
    """Vectors that change their nature twice: unrelated, then similar, then at rest."""
    n, d, rounds, bytes = 20, 2_000, 12, 464
    rng = np.random.default_rng(3)
    unrelated = rng.normal(size=(rounds, n, d))
    similar = rng.normal(size=(rounds, 1, d)) + 0.1 * rng.normal(size=(rounds, n, d))
    resting = np.broadcast_to(similar[-1:] + rng.normal(size=(1, n, d)), (rounds, n, d))
    vectors = np.concatenate([unrelated, similar, resting])
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    fixed = {"identity": "eden-1.5", "rand-k-balanced": "int8", "rand-k-hybrid": "int8"}
    for name, values in fixed.items():
        estimates = played(name, vectors, bytes, values)
        draw(
            axes, name, range(3 * rounds), errors_of(estimates, vectors) / d, label=f"{style_of(name).label}, {values}"
        )
    draw(axes, "auto", range(3 * rounds), errors_of(played("auto", vectors, bytes), vectors) / d, lw=2.4)
    for number, phase in enumerate(("unrelated, new in every round", "similar, new in every round", "at rest")):
        axes.axvline(number * rounds - 0.5, color="#8b95a3", lw=0.8, ls=":")
        axes.text(number * rounds, 1.02, phase, transform=axes.get_xaxis_transform(), color="#374151")
    axes.set(xlabel="round", ylabel="squared error a coordinate", yscale="log")
    axes.legend(loc="lower left")
    return figure


def budgets() -> Figure:
    """Error against bytes on the weather."""
    x = load_weather().vectors.astype(float)
    scale = np.mean(np.sum(x.mean(axis=1) ** 2, axis=1))
    sizes = (80, 90, 100, 120, 150, 200, 280)
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, values in {
        "rand-k": "float32",
        "rand-k-spatial-avg": "float32",
        "rand-k-spatial-max": "int8",
        "rand-k-balanced-hybrid": "int8",
        "identity": "eden",
        "auto": "",
    }.items():
        kinds = [finest_eden(x.shape[-1], size) if values == "eden" else values for size in sizes]
        estimates = [played(name, x, size, kind) for size, kind in zip(sizes, kinds, strict=True)]
        error = [np.mean(errors_of(each, x)) / scale for each in estimates]
        label = f"{style_of(name).label}, {values}".removesuffix(", ")
        draw(axes, name, sizes, error, marker="o", ms=4, label=label)
    axes.axhline(1, color="#8b95a3", ls="--", lw=0.8)
    axes.set(title="37 stations, 89 numbers a day (356 bytes as float32)", xlabel="bytes a payload, header included")
    axes.set(ylabel="squared error relative to that of answering 0", yscale="log", ylim=(1e-8, 3))
    axes.legend()
    return figure


DRAWN = {
    function.__name__.replace("_", "-"): function
    for function in (overview, correlation, memory, own_error, auto, budgets)
}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    unknown = set(sys.argv[1:]) - set(DRAWN)
    if unknown:
        sys.exit(f"no picture is called {', '.join(sorted(unknown))}; there are {', '.join(DRAWN)}")
    with mpl.rc_context(LOOK):
        for name in sys.argv[1:] or DRAWN:
            DRAWN[name]().savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
            print(f"docs/pictures/{name}.svg")


if __name__ == "__main__":
    main()
