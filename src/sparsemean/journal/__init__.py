"""Durable rounds: a log of what was accepted, the state after each round, and rows of memory in mapped files."""

from sparsemean.journal.contents import Contents, contents, faults, journals
from sparsemean.journal.journal import Journal
from sparsemean.journal.log import Record

__all__ = ["Contents", "Journal", "Record", "contents", "faults", "journals"]
