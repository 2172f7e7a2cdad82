"""Recovery: the rounds of a server, or of a shard of one, rebuilt from its journal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from sparsemean.errors import DamagedJournal, JournalError, SparseMeanError
from sparsemean.journal import Journal, Record
from sparsemean.journal.log import readable
from sparsemean.memory.rows import Shelf
from sparsemean.server.rounds import Rounds
from sparsemean.state_tree import Tree


def rebuilt(
    journal: Journal,
    first_round: int,
    fresh: Callable[[int, Shelf], Rounds],
    replay: Callable[[Rounds, Record], None],
) -> tuple[Rounds, Tree]:
    """The rounds as the journal has them, and the state that its last round ended with (None before the first).

    Rows get what the rounds since their last sync wrote into them, once more; then comes the state; then the records of
    the open round.

    Parameters
    ----------
    first_round
        The round that a journal without any record begins with.
    fresh
        Makes empty rounds, which begin with this round and keep their rows on this shelf.
    replay
        Takes one record of the open round again.
    """
    held = journal.recovered()
    try:
        with readable("the state in the journal"):
            first = next(held.records, None)
            rounds = fresh(first_round if first is None else first.round, journal.shelf)
            for changes in held.changes:
                rounds.memory.redo(changes)
            if held.state is not None:
                rounds.restore(held.state)
            for record in chain([] if first is None else [first], held.records):
                replay(rounds, record)
    except JournalError:
        raise
    except SparseMeanError as error:
        raise DamagedJournal(f"a record of the journal does not fit its state: {error}") from error
    return rounds, held.state
