"""The node: vectors to payloads, and the state that stateful encoders keep between rounds."""

from sparsemean.client.client import Client

__all__ = ["Client"]
