"""HTTP: a service that runs rounds for nodes anywhere, and the node's end of it.

The node needs numpy and the standard library alone; ``sparsemean.integrations.http.service`` needs the extra ``serve``.

    node = HttpNode("https://means.example:8443", token=open("token").read())
    receipt = node.send(vector)
    mean = node.mean(receipt.round)
"""

from sparsemean.integrations.http.messages import Heard, NoLongerKept, NotAdmitted, OpenRound, Unreachable
from sparsemean.integrations.http.node import HttpNode

__all__ = ["Heard", "HttpNode", "NoLongerKept", "NotAdmitted", "OpenRound", "Unreachable"]
