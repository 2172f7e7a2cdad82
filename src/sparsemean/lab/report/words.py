"""Names and numbers as people write them."""

from __future__ import annotations

import math

from sparsemean.lab.report.style import style_of

_DATA = {
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "digits": "Digits",
    "weather": "Weather, Brittany",
    "beijing": "Beijing air quality",
    "los-loop": "Los Angeles traffic",
}
_TASKS = {"kmeans": "K-means", "stream": "sensor stream", "logistic": "logistic regression"}


def setting(key: str, value: str) -> str:
    """A value of a key column.

    >>> setting("share", "0.05"), setting("split", "non-iid"), setting("rate", "0.1"), setting("data", "cifar-10")
    ('k/d = 5 %', 'non-IID', 'learning rate 0.1', 'CIFAR-10')
    """
    match key:
        case "share":
            return f"k/d = {_percent(value)}"
        case "split":
            return style_of(value).label
        case "data":
            return _DATA.get(value, value)
        case "rate":
            return f"learning rate {value}"
        case "nodes":
            return f"{_whole(value)} node{'' if _whole(value) == '1' else 's'}"
        case "task":
            return _TASKS.get(value, value.replace("-", " "))
        case _:
            return value


def number(value: float) -> str:
    """Three digits, and a power of ten where zeros would have to be counted.

    >>> number(0.01234), number(1.2e-7), number(98.7), number(float("inf")), number(float("nan"))
    ('0.0123', '1.2·10⁻⁷', '98.7', '∞', '–')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    digits, power = f"{value:.2e}".split("e")
    return f"{float(digits):g}·{power_of_ten(int(power))}"


def power_of_ten(power: int) -> str:
    """A power of ten.

    >>> power_of_ten(-12)
    '10⁻¹²'
    """
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def listed(words: list[str]) -> str:
    """An enumeration.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _percent(value: str) -> str:
    try:
        return f"{100 * float(value):.3g} %"
    except ValueError:
        return value


def _whole(value: str) -> str:
    try:
        return f"{float(value):.0f}"
    except ValueError:
        return value
