"""Every error raised on purpose, and the tree they hang on.

SparseMeanError
├── InvalidInput              an argument is wrong: a vector, a weight, a size, a name
├── IncompatibleScheme        encoder, decoder and memory do not fit together
├── PayloadError              bytes or a receipt that cannot be accepted; nothing was changed
│   ├── MalformedPayload      not a frame, truncated, damaged, or its sizes contradict each other
│   ├── ForeignPayload        made for another run, scheme or node
│   ├── WrongRound            made for a round that is over, or has not begun
│   ├── WrongPlan             made by another plan than the server gave the node in this round
│   ├── ConflictingPayload    the node already sent something else in this round
│   ├── NonFiniteValues       NaN, infinity or absurd magnitudes
│   ├── OutOfStep             node and server no longer share the state the payload builds on
│   └── RoundFull             the round already has as many nodes as the server has room for
├── TooFewNodes               a round cannot be closed with those who came
├── BrokenServer              an error in the middle of a change; there is no journal to recover from
├── JournalError              the journal cannot be written or read now; nothing was changed
│   ├── ForeignJournal        it belongs to another run, or to a server with other settings
│   └── DamagedJournal        its bytes are not what was written
└── CheckFailed               a member does not keep what it declares (``sparsemean.checks``)
"""

from __future__ import annotations


class SparseMeanError(Exception):
    """Base of every error this library raises on purpose."""


class InvalidInput(SparseMeanError, ValueError):
    """An argument is wrong; the message names the remedy."""


class IncompatibleScheme(SparseMeanError, ValueError):
    """Encoder, decoder and memory cannot be right together."""


class PayloadError(SparseMeanError):
    """A payload was refused; the state is as it was."""


class MalformedPayload(PayloadError, ValueError):
    """The bytes are not a whole, undamaged frame."""


class ForeignPayload(PayloadError):
    """The payload belongs to another run, scheme or node."""


class WrongRound(PayloadError):
    """The payload is late or early."""


class WrongPlan(PayloadError):
    """The payload follows another plan than the server gave its node in this round."""


class ConflictingPayload(PayloadError):
    """Another payload, or weight, stands for this node and round."""


class NonFiniteValues(PayloadError, ValueError):
    """The payload carries NaN, infinity or an absurd magnitude."""


class OutOfStep(PayloadError):
    """Node and server no longer share the state this payload builds on."""


class RoundFull(PayloadError):
    """No room for one more node in this round."""


class TooFewNodes(SparseMeanError):
    """The round stays open: not enough nodes, or no weight at all."""


class BrokenServer(SparseMeanError):
    """The state is incomplete, and there is no journal to take it from; make a new server."""


class JournalError(SparseMeanError):
    """The journal cannot be used now; the state is as it was."""


class ForeignJournal(JournalError):
    """The journal belongs to another run, or to a server with other settings."""


class DamagedJournal(JournalError):
    """The journal's bytes are not what was written."""


class CheckFailed(SparseMeanError, AssertionError):
    """A member of the library, or yours, does not keep what it declares."""


class DivergenceWarning(UserWarning):
    """The memory feeds its own error back faster than it learns."""
