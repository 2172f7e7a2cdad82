"""What was measured, as JSON: for reading again, and for comparing commits."""

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
from sparsemean.lab.bench.rows import Row
from sparsemean.lab.bench.timing import Timing

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """Rows and the machine they were measured on; ``left_out`` says of each case that was not measured why."""

    machine: Machine
    rows: tuple[Row, ...] = ()
    links: tuple[Break, ...] = ()
    left_out: tuple[str, ...] = ()
    complete: bool = True
    version: str = field(default=__version__)

    def having(self, found: Row | Break) -> Record:
        """With one more."""
        if isinstance(found, Row):
            return replace(self, rows=(*self.rows, found))
        return replace(self, links=(*self.links, found))

    @property
    def busy(self) -> list[Row]:
        """Rows that were measured while others used the machine too."""
        return [row for row in self.rows if row.others > BUSY]

    def to_json(self) -> dict[str, Any]:
        """As plain data, with what each baseline means."""
        rows = [{**asdict(row), "ratios": {name: asdict(r) for name, r in row.ratios.items()}} for row in self.rows]
        return {"format": FORMAT, **asdict(self), "rows": rows, "baselines": MEANING}

    def write(self, path: Path) -> None:
        """All of it, readable by ``read``."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Record:
    """The record that ``write`` wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise InvalidInput(f"{path} is of format {found['format']}, and only {FORMAT} is known; measure anew")
        return Record(
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


def _row(found: Mapping[str, Any]) -> Row:
    beside = {name: Timing(**timing) for name, timing in found["baselines"].items()}
    case = Case(**found["case"]) if found["case"] else None
    return Row(found["what"], case, Timing(**found["seconds"]), beside, found["peak_bytes"], found["others"])
