"""Evidence from result tables: one number per seed, summarised over the rounds that matter, and checks made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparsemean.lab.experiments.claims.check import Check, of_factors, of_number
from sparsemean.lab.tables import read_table

Line = dict[str, str]
Where = dict[str, str | float]
Summary = Callable[[Sequence[float]], float]


WORDS = {"mse": "error", "nmse": "relative error", "bytes_per_node": "bytes", "test_accuracy": "test accuracy"}
"""Columns as people call them."""

SPLITS = {"iid": "IID", "non-iid": "non-IID"}


@dataclass(frozen=True)
class Tables:
    """The tables in a folder; a missing one has no rows."""

    folder: Path
    asked: dict[str, None] = field(default_factory=dict, compare=False)
    """Names of the tables that were read, in this order."""
    _known: dict[str, dict[str, list[Line]]] = field(default_factory=dict, compare=False)

    def rows(self, figure: str, **where: str | float) -> list[Line]:
        """The rows whose columns have these values; numbers are compared as numbers."""
        self.asked[figure] = None
        if figure not in self._known and self.has(figure):
            self._known[figure] = _by_scheme(self._path(figure))
        known = self._known.get(figure, {})
        schemes = [str(where["scheme"])] if "scheme" in where else list(known)
        rows = (row for scheme in schemes for row in known.get(scheme, []))
        return [row for row in rows if all(_same(row.get(name, ""), value) for name, value in where.items())]

    def has(self, figure: str) -> bool:
        """Whether there is such a table."""
        return self._path(figure).exists()

    def distinct(self, column: str, figures: Iterable[str]) -> set[str]:
        """The values that a column has in the rows of these figures."""
        return {row.get(column, "") for figure in figures for row in self.rows(figure)}

    def _path(self, figure: str) -> Path:
        return self.folder / f"{figure}.csv"

    def panels(self, figure: str, **where: str | float) -> list[Where]:
        """The splits and shares that the figure has, without the exact mean's."""
        found = {(row["split"], float(row["share"])) for row in self.rows(figure, **where) if row["share"]}
        return [{**where, "split": split, "share": share} for split, share in sorted(found)]

    def per_seed(self, figure: str, column: str, summary: Summary, **where: str | float) -> dict[str, float]:
        """Seed → summary of the column over the rounds in order."""
        series: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows(figure, **where):
            if row.get(column, "") != "":
                series.setdefault(row["seed"], []).append((float(row["round"]), float(row[column])))
        return {seed: summary([value for _, value in sorted(points)]) for seed, points in sorted(series.items())}


def _by_scheme(path: Path) -> dict[str, list[Line]]:
    known: dict[str, list[Line]] = {}
    for row in read_table(path):
        known.setdefault(row.get("scheme", ""), []).append(row)
    return known


def _same(cell: str, wanted: str | float) -> bool:
    return cell == wanted if isinstance(wanted, str) else cell != "" and float(cell) == wanted


def late(values: Sequence[float]) -> float:
    """The mean of the last quarter of the rounds.

    >>> late([9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 1.0, 3.0])
    2.0
    """
    last = values[-max(1, len(values) // 4) :]
    return sum(last) / len(last)


def first(values: Sequence[float]) -> float:
    """The first round's."""
    return values[0]


def overall(values: Sequence[float]) -> float:
    """The mean of all rounds."""
    return sum(values) / len(values)


def early(values: Sequence[float]) -> float:
    """The mean of rounds 3 to 10, counted from 1."""
    some = values[2:10] or values
    return sum(some) / len(some)


def factors(over: dict[str, float], under: dict[str, float]) -> list[float]:
    """Per seed that both have: one over the other. Two that left all bounds are even."""
    return [_factor(value, under[seed]) for seed, value in over.items() if seed in under]


def _factor(over: float, under: float) -> float:
    if math.isinf(over) and math.isinf(under):
        return 1.0
    if under == 0.0:
        return 1.0 if over == 0.0 else math.inf
    return over / under


def compared(
    tables: Tables,
    figure: str,
    column: str,
    ours: Iterable[str],
    others: Iterable[str],
    panels: Sequence[Where],
    limit: float = 1.0,
    relation: str = "<",
    summary: Summary = late,
) -> list[Check]:
    """Compare each of our schemes with each of the others in each panel: the factor between them, paired by seed.

    Parameters
    ----------
    tables, figure, column
        Where the numbers are.
    ours, others
        Names of schemes.
    panels
        Columns and values that select the rows of a panel.
    limit, relation
        What the factor should be: "<" the limit, ">" it, "=" it, or "not <" it.
    summary
        Of the rounds of one seed.
    """
    baselines, checks = list(others), []
    for panel in panels:
        for scheme in ours:
            own = tables.per_seed(figure, column, summary, scheme=scheme, **panel)
            for other in baselines:
                found = factors(own, tables.per_seed(figure, column, summary, scheme=other, **panel))
                if found:
                    place = f"{named(figure)}, {told(panel)}"
                    what = f"{place}: {WORDS.get(column, column)} of {scheme} over {other}"
                    checks.append(of_factors(what, found, relation, limit))
    return checks


def against_itself(
    tables: Tables,
    what: str,
    figure: str,
    over: tuple[str, Summary],
    under: tuple[str, Summary],
    relation: str,
    limit: float,
    where: Where,
) -> list[Check]:
    """A scheme at two times of its runs: one (column, summary) over another, paired by seed; no check without rows."""
    (above, above_summary), (below, below_summary) = over, under
    found = factors(
        tables.per_seed(figure, above, above_summary, **where),
        tables.per_seed(figure, below, below_summary, **where),
    )
    return [of_factors(what, found, relation, limit)] if found else []


def named(figure: str) -> str:
    """The figure's table as people call it.

    >>> named("power-iteration"), named("kmeans-bytes"), named("logistic")
    ('power iteration', 'K-means bytes', 'logistic regression')
    """
    return figure.replace("-", " ").replace("kmeans", "K-means").replace("logistic", "logistic regression")


def told(panel: Where) -> str:
    """The panel in a few words.

    >>> told({"split": "iid", "share": 0.1})
    'IID, k/d = 0.1'
    """
    names = {"share": "k/d = ", "rate": "η = ", "split": "", "data": ""}
    return ", ".join(f"{names.get(name, name + ' = ')}{SPLITS.get(str(value), value)}" for name, value in panel.items())


def passed(tables: Tables, *statements: str) -> list[Check]:
    """A check for each row of these statements in the theory table."""
    checks = []
    for row in (row for name in statements for row in tables.rows("theory", statement=name)):
        if row["z"]:
            what = f"distance from the formula in standard errors ({row['setting']})"
            checks.append(of_number(what, abs(float(row["z"])), "<", 4.0))
        else:
            checks.append(of_number(row["setting"], float(row["measured"]), row["relation"], float(row["exact"])))
    return checks


def stated(tables: Tables, statement: str, relation: str, limit: float, what: str = "") -> list[Check]:
    """The measured number of a theory statement, ± 2 standard errors, against what the paper says of it."""
    checks = []
    for row in tables.rows("theory", statement=statement):
        value, spread = float(row["measured"]), 2 * float(row["se"] or 0.0)
        checks.append(Check(what or row["setting"], value, value - spread, value + spread, relation, limit))
    return checks
