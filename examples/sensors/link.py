"""How stations and the fusion server talk: the topics, the answer to a report, and a connection to the broker."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

from sparsemean import Receipt, Run, SparseMeanError

try:
    from paho.mqtt import client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion
except ImportError:
    sys.exit("paho-mqtt is not installed: pip install paho-mqtt")

__all__ = ["PASSWORD", "SECRET", "Topics", "answer", "connection", "mqtt", "own_secret", "say", "secret_of"]

PASSWORD = "SENSORS_PASSWORD"
"""The environment variable that holds a program's password; a command line can be read by everybody."""

SECRET = "SENSORS_SECRET"
"""The same for compact frames: the secret of a station or, at the server, that from which it derives theirs."""


@dataclass(frozen=True)
class Topics:
    """All that is said about one network. The broker lets a station write under its own name alone.

    >>> Topics("brittany").payload("22016001")
    'sparsemean/brittany/node/22016001/payload'
    """

    network: str

    @property
    def run(self) -> str:
        """Retained: ``Run.to_json``, all that a station has to know."""
        return f"sparsemean/{self.network}/run"

    @property
    def round(self) -> str:
        """Retained: the open round and the digest of its run; round null when all is over."""
        return f"sparsemean/{self.network}/round"

    @property
    def estimate(self) -> str:
        """Retained: the last closed round, for whoever wants it."""
        return f"sparsemean/{self.network}/estimate"

    def payload(self, node: str) -> str:
        """From a station: the bytes of ``Client.encode``. ``+`` for all stations."""
        return f"sparsemean/{self.network}/node/{node}/payload"

    def receipt(self, node: str) -> str:
        """To a station: what became of its payload."""
        return f"sparsemean/{self.network}/node/{node}/receipt"

    def presence(self, node: str) -> str:
        """Retained: ``here``, or ``gone``, which the broker says for a station whose connection broke."""
        return f"sparsemean/{self.network}/node/{node}/presence"

    @staticmethod
    def node(topic: str) -> str:
        """Whose topic it is: the only place a station's name is ever taken from."""
        return topic.split("/")[3]


def own_secret(run: Run) -> bytes | None:
    """What this program was given; None where frames are full, or it was given nothing."""
    given = os.environ.get(SECRET)
    return bytes.fromhex(given) if given and run.frame != "full" else None


def secret_of(node: str, network: bytes) -> bytes:
    """A station's secret, derived from that of the network, which the server alone has."""
    return hashlib.blake2s(node.encode(), key=network).digest()


def answer(result: Receipt | SparseMeanError, round: int) -> str:
    """The receipt, or the kind of the refusal with its reason and the open round."""
    if isinstance(result, SparseMeanError):
        return json.dumps({"refused": type(result).__name__, "why": str(result), "round": round})
    return json.dumps({"taken": asdict(result)})


def connection(user: str, broker: str, will: str | None = None) -> mqtt.Client:
    """A client for the broker at ``host:port`` that has yet to be started; it reconnects by itself.

    ``will`` is a presence topic on which the broker says ``gone`` when this program breaks off.
    """
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=user)
    client.username_pw_set(user, os.environ.get(PASSWORD))
    client.reconnect_delay_set(min_delay=1, max_delay=10)
    if will is not None:
        client.will_set(will, "gone", qos=1, retain=True)
    host, _, port = broker.rpartition(":")
    client.connect_async(host, int(port), keepalive=10)
    return client


def say(client: mqtt.Client, topic: str, message: dict[str, Any], retain: bool = False) -> mqtt.MQTTMessageInfo:
    """Publish a message as JSON, so that it arrives at least once."""
    return client.publish(topic, json.dumps(message), qos=1, retain=retain)
