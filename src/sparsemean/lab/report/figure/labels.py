"""Names of settings and data sets as people write them."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemean.lab.numbers import parse_number
from sparsemean.lab.report.figure.style import style_of

_DATA = {
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "digits": "Digits",
    "weather": "Weather, Brittany",
    "beijing": "Beijing air quality",
    "los-loop": "Los Angeles traffic",
}
_TASKS = {"kmeans": "K-means", "stream": "sensor stream", "logistic": "logistic regression"}


def setting_label(key: str, value: str) -> str:
    """The text for one value of a key column.

    >>> [setting_label(*pair) for pair in (("share", "0.05"), ("split", "non-iid"), ("nodes", "1"))]
    ['k/d = 5 %', 'non-IID', '1 node']
    >>> setting_label("rate", "0.1"), setting_label("data", "cifar-10")
    ('learning rate 0.1', 'CIFAR-10')
    """
    match key:
        case "share":
            share = parse_number(value)
            return f"k/d = {value if share is None else f'{100 * share:.3g} %'}"
        case "split":
            return style_of(value).label
        case "data":
            return _DATA.get(value, value)
        case "rate":
            return f"learning rate {value}"
        case "nodes":
            number = parse_number(value)
            count = value if number is None else f"{number:.0f}"
            return f"{count} node{'' if count == '1' else 's'}"
        case "bytes":
            return f"{value} bytes a node"
        case "dim":
            return f"d = {value}"
        case "task":
            return _TASKS.get(value, value.replace("-", " "))
        case _:
            return value


def enumeration(words: Sequence[str]) -> str:
    """The words with commas, and "and" before the last.

    >>> enumeration(["a"]), enumeration(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
