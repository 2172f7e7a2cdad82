"""Names as types: those that there are, and no others.

mypy finds each typo below, and would find it superfluous to ignore what is no error any more; Python refuses it too.
"""

from __future__ import annotations

from typing import get_args

import pytest

import sparsemean as sm
from sparsemean import _names
from sparsemean.schemes import AUTO, scheme_name
from sparsemean.wire.values import EDEN, KINDS, LONG, MODULO, PEERS, value_name

RUN = sm.Run(sm.named("rand-k-temporal", k=1), dim=2)


def names_in(kind: object) -> list[str]:
    """The strings of a Literal, nested ones included."""
    return [name for member in get_args(kind) for name in ([member] if isinstance(member, str) else names_in(member))]


def test_types_have_the_names_that_there_are():
    assert names_in(_names.FixedScheme) == sm.names()
    assert names_in(_names.SchemeName) == [*sm.names(), AUTO]
    assert names_in(_names.Eden) == [name for name, kind in EDEN.items() if kind.code % 8 == 0]
    assert sorted(names_in(_names.ValueName)) == sorted([*KINDS, *LONG, *MODULO, *PEERS, *names_in(_names.Eden)])


def test_every_value_name_is_that_of_its_kind():
    names = [*names_in(_names.ValueName), *EDEN]
    assert [value_name(name) for name in names] == names


def test_a_text_from_outside_becomes_a_name_or_is_refused():
    assert sm.named(scheme_name("rand-k"), k=1, values=value_name("int8")) == sm.named("rand-k", k=1, values="int8")
    with pytest.raises(sm.InvalidInput, match="did you mean 'rand-k-temporal'"):
        scheme_name("rand-k-temporel")
    with pytest.raises(sm.InvalidInput, match=r"use 'eden-1\.3125'"):
        value_name("eden-1.3")


@pytest.mark.parametrize(
    "typo",
    [
        lambda: sm.named("rand-k-temporel", k=1),  # type: ignore[call-overload]
        lambda: sm.named("rand-k", k=1, values="int7"),  # type: ignore[call-overload]
        lambda: sm.named("rand-k", k=1, values="eden-1.3"),  # type: ignore[call-overload]
        lambda: sm.named("auto", bytes=100, node="statefull"),  # type: ignore[call-overload]
        lambda: sm.Scheme(sm.RandK(1), values="qsgd-9"),  # type: ignore[arg-type]
        lambda: sm.Auto(bytes=100, node="statefull"),  # type: ignore[arg-type]
        lambda: sm.Run.for_bytes("topk", dim=2, bytes=100),  # type: ignore[arg-type]
        lambda: sm.Run.for_bytes("top-k", dim=2, bytes=100, values="float8"),  # type: ignore[arg-type]
        lambda: sm.Server(RUN, missing="cary"),  # type: ignore[arg-type]
        lambda: sm.Server(RUN, durability="rounds"),  # type: ignore[arg-type]
    ],
)
def test_a_typo_is_an_error_of_types_and_refused(typo):
    with pytest.raises(sm.InvalidInput):
        typo()


def test_whatever_there_is_passes_as_before():
    sm.named("auto", bytes=100, node="stateful")
    sm.named("auto", 0.5)
    sm.named("rtop-k", 0.5, values="rotated-3", over=3.0)
    sm.named("rand-k", k=(0.5, 0.25), values="modulo-4")
    sm.Scheme(sm.RandK(1), values=RUN.scheme.values)
    sm.Run.for_bytes("auto", dim=2, bytes=100, node="broadcast")
    for name in sm.names():
        ratio = {"ratio": 1.0} if name == "rand-k-spatial-opt" else {}
        sm.named(name, k=1, values=value_name("eden-1.0625"), **ratio)
    sm.Server(RUN, missing="carry", durability="round")
