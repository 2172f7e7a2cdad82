"""The record of a benchmark as a JSON file: to show it again, and to compare commits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.bench.baselines import MEANING
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.link import Break
from sparsemean.lab.bench.machine import BUSY, Machine
from sparsemean.lab.bench.measurement import Measurement
from sparsemean.lab.bench.timing import Timing

FORMAT = 1


@dataclass(frozen=True)
class BenchRecord:
    """All measurements of one benchmark.

    Parameters
    ----------
    machine
        What they were measured on.
    rows, links
        The measurements; those of rounds over a link apart.
    left_out
        The cases that were not measured, each with the reason.
    complete
        Whether the benchmark ran to its end.
    version
        Of sparsemean.
    """

    machine: Machine
    rows: tuple[Measurement, ...] = ()
    links: tuple[Break, ...] = ()
    left_out: tuple[str, ...] = ()
    complete: bool = True
    version: str = field(default=__version__)

    def having(self, found: Measurement | Break) -> BenchRecord:
        """The record with one more measurement."""
        if isinstance(found, Measurement):
            return replace(self, rows=(*self.rows, found))
        return replace(self, links=(*self.links, found))

    @property
    def busy(self) -> list[Measurement]:
        """Rows that were measured while others used the machine too."""
        return [row for row in self.rows if row.others > BUSY]

    def to_json(self) -> dict[str, Any]:
        """As plain data, with the meaning of each baseline."""
        rows = [{**asdict(row), "ratios": {name: asdict(r) for name, r in row.ratios.items()}} for row in self.rows]
        return {"format": FORMAT, **asdict(self), "rows": rows, "baselines": MEANING}

    def write(self, path: Path) -> None:
        """Write the record as JSON, which ``read`` reads."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> BenchRecord:
    """The record that ``write`` wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise InvalidInput(f"{path} is of format {found['format']}, and only {FORMAT} is known; measure anew")
        return BenchRecord(
            found["machine"],
            tuple(map(_row, found["rows"])),
            tuple(Break(**{**each, "case": Case(**each["case"])}) for each in found["links"]),
            tuple(found["left_out"]),
            bool(found["complete"]),
            str(found["version"]),
        )
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    except InvalidInput:
        raise
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{path} was not written by `sparsemean bench --out`, or was changed since") from None


def _row(found: Mapping[str, Any]) -> Measurement:
    beside = {name: Timing(**timing) for name, timing in found["baselines"].items()}
    case = Case(**found["case"]) if found["case"] else None
    return Measurement(found["what"], case, Timing(**found["seconds"]), beside, found["peak_bytes"], found["others"])
