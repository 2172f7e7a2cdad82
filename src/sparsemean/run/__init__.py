"""What nodes and server agree on before the first round, as a value, as text, and within a byte budget."""

from sparsemean.run.run import Run

__all__ = ["Run"]
