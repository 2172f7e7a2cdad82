"""The figure: where the stations are and how far from the others, the mean through the month, and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from readings import Readings

INK, ESTIMATE, EXACT, LOST = "#374151", "#0d2ab3", "#d97706", "#b91c1c"
WIDE, HIGH, BELOW = 0.2, 0.07, 0.08  # degrees: the room of a number on the map, and how far it is from its station
LABELLED = ("ILE-DE-BREHAT", "PTE DU RAZ", "ROSTRENEN", "BELLE ILE-LE TALUT", "DINARD", "PLOERMEL", "NOIRMOUTIER EN")


def draw(readings: Readings, rows: list[dict[str, Any]], out: Path) -> None:
    """Write the figure; rounds without an estimate are gaps."""
    rows = [row for row in rows if "mean" in row]
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK}):
        figure = Figure(figsize=(14, 9.5), layout="constrained")
        rows_of_panels = figure.add_gridspec(2, 1, height_ratios=[1.25, 1])
        top = rows_of_panels[0].subgridspec(1, 2, width_ratios=[1.15, 1])
        bottom = rows_of_panels[1].subgridspec(1, 2, width_ratios=[1.9, 1])
        offsets = station_offsets(readings, rows)
        draw_map(figure.add_subplot(top[0]), readings, rows, offsets)
        draw_stations(figure.add_subplot(top[1]), readings, offsets)
        draw_profile(figure.add_subplot(bottom[0]), readings, rows)
        draw_errors(figure.add_subplot(bottom[1]), readings, rows)
        sent, whole = (sum(row[of] for row in rows) for of in ("bytes", "dense_bytes"))
        title = f"Weather at {len(readings.stations)} stations, fused over MQTT from {sent / whole:.1%} of the bytes"
        figure.suptitle(title, fontsize=13)
        figure.supxlabel(f"Data: {readings.weather.attribution}", fontsize=7)
        figure.savefig(out, dpi=120)


def station_offsets(readings: Readings, rows: list[dict[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """In °C, by station: estimate and standard error from the server, and the exact one over the rounds it was in."""
    told = rows[-1]["offsets"] if rows else {}
    kelvin, found = readings.scale("t"), {}
    for i, node in enumerate(readings.stations):
        if node not in told:
            continue
        exact = []
        for row in rows:
            if node in row["nodes"] and len(row["nodes"]) > 1:
                came = [readings.stations.index(other) for other in row["nodes"] if other != node]
                vectors = readings.part(readings.vectors[row["round"]], "t")
                exact.append(np.mean(vectors[i] - vectors[came].mean(axis=0)))
        (offset, *_), (error, *_) = told[node]
        if exact and np.isfinite(error):
            found[node] = (kelvin * offset, kelvin * error, kelvin * float(np.mean(exact)))
    return found


def draw_map(
    axes: Axes, readings: Readings, rows: list[dict[str, Any]], offsets: dict[str, tuple[float, float, float]]
) -> None:
    weather, n = readings.weather, len(readings.stations)
    east, north = weather.longitude[:n].copy(), weather.latitude[:n].copy()
    placeless = np.flatnonzero(np.isnan(east))
    known_east, known_north = east[np.isfinite(east)], north[np.isfinite(north)]
    east[placeless] = known_east.min() + 0.36 * np.arange(len(placeless))
    north[placeless] = known_north.min() + 0.05
    colour = np.array([offsets.get(node, (0.0,))[0] for node in readings.stations])
    error = np.array([offsets.get(node, (0.0, 0.0))[1] for node in readings.stations])
    bound = max(0.1, float(np.abs(colour).max()))
    rings = [LOST if any(node in row["missing"] for row in rows) else "none" for node in readings.stations]
    axes.scatter(east, north, s=150, facecolors="none", edgecolors=rings, linewidths=1.8)
    shown = axes.scatter(
        east, north, s=80, c=colour, cmap="RdBu_r", vmin=-bound, vmax=bound, edgecolors=INK, linewidths=0.6
    )
    axes.figure.colorbar(shown, ax=axes, shrink=0.8, label="warmer than the other stations by … °C, estimated")
    taken = list(zip(east, north, strict=True))
    for x, y, value, se in zip(east, north, colour, error, strict=True):
        below = y - BELOW
        free = all(abs(x - other_x) > WIDE or abs(below - other_y) > HIGH for other_x, other_y in taken)
        if se > 0 and free:  # the others are in the list beside the map
            taken.append((x, below))
            axes.annotate(
                f"{value:+.1f} ± {se:.1f}",
                (x, y),
                (0, -8),
                textcoords="offset points",
                fontsize=5.5,
                ha="center",
                va="top",
            )
    for name, x, y in zip(weather.names[:n], east, north, strict=True):
        if name in LABELLED:
            axes.annotate(name.title(), (x, y), (7, 4), textcoords="offset points", fontsize=7.5)
    if len(placeless):
        axes.text(east[placeless].mean(), north[placeless[0]] + 0.07, "place not published", fontsize=7.5, ha="center")
    axes.set_aspect(1 / np.cos(np.radians(known_north.mean())))
    ringed = " (ring: missed a round)" if LOST in rings else ""
    axes.set(xlabel="° east", ylabel="° north", title=f"Mean temperature of each station{ringed}")
    axes.margins(0.08)


def draw_stations(axes: Axes, readings: Readings, offsets: dict[str, tuple[float, float, float]]) -> None:
    axes.set_title("The same with twice the standard error, and exact")
    if not offsets:
        axes.text(0.5, 0.5, "this scheme sends no readings drawn at random", ha="center", transform=axes.transAxes)
        return
    order = sorted(offsets, key=lambda node: offsets[node][2])
    names = dict(zip(readings.weather.stations, readings.weather.names, strict=True))
    value, error, exact = np.array([offsets[node] for node in order]).T
    rows = np.arange(len(order))
    axes.errorbar(value, rows, xerr=2 * error, fmt="o", ms=4, color=ESTIMATE, elinewidth=1, label="estimated, ± 2 SE")
    axes.plot(exact, rows, "|", ms=9, mew=2, color=EXACT, label="exact")
    axes.axvline(0, color=INK, lw=0.5)
    axes.set_yticks(rows, [names[node].title() for node in order], fontsize=6.5)
    axes.set(xlabel="warmer than the other stations by … °C", ylim=(-1, len(order)))
    axes.legend(loc="lower right", frameon=False)


def draw_profile(axes: Axes, readings: Readings, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        mean, exact = (readings.celsius(np.array(row[key])) for key in ("mean", "exact"))
        hours = row["round"] * readings.days + np.arange(len(mean)) / 24 + 1
        first = row is rows[0]
        if row["error"] is not None:
            half = readings.scale("t") * np.sqrt(max(0.0, row["error"]) / len(row["mean"]))
            label = "± the error the server states" if first else None
            axes.fill_between(hours, mean - half, mean + half, color=ESTIMATE, alpha=0.2, lw=0, label=label)
        axes.plot(hours, mean, color=ESTIMATE, lw=0.8, label="estimated" if first else None)
        axes.plot(hours, exact, color=EXACT, lw=1.2, label="exact" if first else None)
        axes.axvline(hours[0], color=INK, lw=0.3, alpha=0.5)
    axes.set(
        xlabel="day of January 2014 (lines: rounds)", ylabel="°C", title="The region's mean temperature, hour by hour"
    )
    axes.legend(loc="upper right", ncols=3, frameon=False)
    axes.margins(x=0.01)


def draw_errors(axes: Axes, readings: Readings, rows: list[dict[str, Any]]) -> None:
    rounds, dim = np.array([row["round"] for row in rows]), readings.vectors.shape[2]
    axes.plot(rounds, [row["true_error"] / dim for row in rows], "D", color=EXACT, label="true, of this one round")
    stated = [row for row in rows if row["error"] is not None]
    axes.errorbar(
        [row["round"] for row in stated],
        [row["error"] / dim for row in stated],
        yerr=[2 * row["error_se"] / dim for row in stated],
        fmt="o",
        ms=4,
        color=ESTIMATE,
        label="expected, the server's own, ± 2 SE",
    )
    axes.set_ylim(bottom=0)
    low, high = axes.get_ylim()
    axes.set_ylim(low, 1.25 * high)
    for row in rows:
        if row["missing"]:
            axes.annotate(
                f"{len(row['missing'])} missing", (row["round"], 0), (0, 4), textcoords="offset points",
                rotation=90, ha="center", va="bottom", color=LOST, fontsize=7.5,
            )  # fmt: skip
    axes.set_xticks(rounds)
    axes.set(
        xlabel="round",
        ylabel="squared error per reading, in squared spreads",
        title="How good the mean is\n(a single round scatters about what is expected)",
    )
    axes.legend(loc="upper right", frameon=False)
