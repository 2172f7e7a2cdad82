"""``make demo``: every scheme on the embedded weather network, through the real bytes, in one table and one page."""

from __future__ import annotations

import html
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sparsemean as sm
from sparsemean.lab.weather import Weather, load_weather
from sparsemean.payload import Doubles
from sparsemean.simulation import play_round

SHARE = 0.1
SEEDS = 20
PAGE = Path("demo.html")


@dataclass(frozen=True)
class Row:
    """One scheme's averages over rounds and seeds; NMSE is ‖estimate − mean‖² / mean_i ‖x_i‖²."""

    name: str
    bytes_per_node: float
    nmse: float
    nmse_se: float
    exact: float | None
    unbiased: bool
    node_state: bool

    def cells(self) -> list[str]:
        """The row as text."""
        exact = "" if self.exact is None else f"{self.exact:.4f}"
        measured = f"{self.nmse:.4f} ± {self.nmse_se:.4f}"
        kind = "yes" if self.unbiased else "no"
        return [self.name, f"{self.bytes_per_node:.0f}", measured, exact, kind, "yes" if self.node_state else "no"]


HEADINGS = ["scheme", "bytes per node", "NMSE measured", "NMSE exact", "unbiased", "node state"]


def scheme_of(name: str, vectors: Doubles) -> sm.Scheme:
    """The named scheme at ``SHARE``; the one that wants to know the correlation is told the month's average."""
    if name != "rand-k-spatial-opt":
        return sm.named(name, k=SHARE)
    energies = [sm.theory.correlation(day) for day in vectors]
    return sm.named(name, k=SHARE, ratio=sum(r2 for _, r2 in energies) / sum(r1 for r1, _ in energies))


def exact_error(server: sm.Server, clients: list[sm.Client], vectors: Doubles) -> float | None:
    """The exact error of the coming round, given what the server remembers (Theorems 1 and 3)."""
    share, T = server.run.share, server.run.scheme.decoder.T
    if share is None or T is None:
        return None
    residuals = vectors - np.array([server.expected(client.node) for client in clients])
    r1, r2 = sm.theory.correlation(residuals)
    return sm.theory.spatial_mse(r1, r2, len(clients), share, T)


def measure(name: str, weather: Weather) -> Row:
    """Play the whole month ``SEEDS`` times."""
    days = weather.vectors.astype(np.float64)
    scheme = scheme_of(name, days)
    nmse, exact, sent = np.zeros((SEEDS, len(days))), [], 0
    for seed in range(SEEDS):
        run = sm.Run(scheme, days.shape[2], seed)
        server, clients = sm.Server(run), [sm.Client(run, station) for station in weather.stations]
        for t, vectors in enumerate(days):
            norm = np.mean(np.sum(vectors**2, axis=1))
            predicted = exact_error(server, clients, vectors)
            estimate = play_round(server, clients, vectors, np.ones(len(clients)))
            nmse[seed, t] = np.sum((estimate.mean - vectors.mean(axis=0)) ** 2) / norm
            exact += [] if predicted is None else [predicted / norm]
            sent += estimate.bytes
    per_node = sent / (SEEDS * len(days) * days.shape[1])
    spread = float(nmse.mean(axis=1).std(ddof=1) / np.sqrt(SEEDS))
    known = float(np.mean(exact)) if exact else None
    return Row(name, per_node, float(nmse.mean()), spread, known, scheme.unbiased, scheme.node_state)


def as_text(rows: list[Row]) -> str:
    """The rows as aligned columns."""
    table = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def as_page(rows: list[Row], attribution: str, caption: str) -> str:
    """The rows as one HTML file that needs nothing else."""
    head = "".join(f"<th>{html.escape(heading)}" for heading in HEADINGS)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in row.cells()) for row in rows)
    style = (
        ":root{color-scheme:light dark}body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{padding:.3rem .8rem;text-align:left;"
        "border-bottom:1px solid #8884}"
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>sparsemean demo</title>'
        f"<style>{style}</style><h1>sparsemean: one month of weather, every scheme</h1>"
        f"<p>{html.escape(caption)}<table><thead><tr>{head}<tbody>{body}</table><p><small>{html.escape(attribution)}"
    )


def main() -> None:
    """Measure, print, write the page."""
    weather = load_weather()
    days, stations, dim = weather.vectors.shape
    caption = (
        f"{stations} weather stations in Brittany, {days} days as rounds, {dim} numbers a day; each node sends "
        f"{SHARE:.0%} of them. Averages over {SEEDS} seeds; sorted by error."
    )
    print(caption + "\n", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.DivergenceWarning)
        rows = sorted((measure(name, weather) for name in sm.names()), key=lambda row: row.nmse)
    print(as_text(rows))
    PAGE.write_text(as_page(rows, weather.attribution, caption), encoding="utf-8")
    print(f"\nThe same as a page: {PAGE.resolve()}\nData: {weather.attribution}")


if __name__ == "__main__":
    main()
