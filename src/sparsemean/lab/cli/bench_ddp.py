"""``sparsemean bench --ddp``: what the DDP hook costs here, and the links below which it pays."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from sparsemean.lab.bench.ddp import DdpRecord, DdpRow, ddp_record
from sparsemean.lab.bench.machine import BUSY
from sparsemean.lab.cli.output import plain, print_json, print_table
from sparsemean.lab.numbers import terminal_number

COLUMNS = ("gradients averaged by", "backward, ms", "× dense", "processor", "bytes", "memory", "pays below, Mbit/s")


def bench_ddp(parameters: int, repeats: int, out: Path | None, as_json: bool) -> None:
    """Measure, print, and write the numbers where that is wanted."""
    record = ddp_record(parameters, repeats)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record.to_json(), indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(record.to_json())
        return
    show(record)
    if out is not None:
        _say(f"Written: {out.resolve()}")


def show(record: DdpRecord) -> None:
    """The machine, a row a method, and what the columns mean."""
    here, dense = record.machine, record.rows[0]
    _say(f"{here['processor']}, {here['cores']} cores, Python {here['python']}, torch {here['torch']}")
    _say(f"{record.ranks} processes with one thread each, gloo on loopback, {record.parameters:,} parameters")
    print_table(COLUMNS, [_cells(row, dense) for row in record.rows])
    _say(
        "backward: loss.backward() with its collectives, median of the slower rank; processor: its processor time over "
        "that of dense; bytes: what a rank hands to collectives; memory: by how much it rises meanwhile, at most. On a "
        "link below the last speed a step is faster than with dense gradients."
    )
    if record.others > BUSY:
        cores = record.machine["cores"]
        _say(f"Something else ran meanwhile, on {record.others:.2g} of {cores} cores: read the times with care.")


def _cells(row: DdpRow, dense: DdpRow) -> tuple[str, ...]:
    never_always = {0.0: "never", float("inf"): "always"}
    return (
        row.method,
        f"{1e3 * row.seconds.median:.4g}",
        f"{row.ratio:.2f}",
        f"{row.processor.median / dense.processor.median:.2f}",
        f"{row.bytes_sent:,}",
        "" if row.peak_bytes is None else f"{row.peak_bytes / 1e6:.0f} MB",
        "" if row is dense else never_always.get(row.pays_below) or terminal_number(row.pays_below / 1e6),
    )


def _say(text: str) -> None:
    Console().print(escape(plain(text)), highlight=False, soft_wrap=True)
