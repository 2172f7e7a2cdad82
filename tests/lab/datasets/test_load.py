"""One function loads a set by its name and a file by its path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.datasets import Images, Stream, load, names


def test_names_are_those_of_the_sets() -> None:
    assert set(datasets.ENTRIES) < set(names())
    assert names() == ("fashion-mnist", "cifar-10", "digits", "weather", "beijing", "los-loop")


@pytest.mark.parametrize(("name", "kind"), [("digits", Images), ("weather", Stream)])
def test_a_name_gives_the_set_that_bears_it(name: str, kind: type) -> None:
    loaded = load(name)
    assert isinstance(loaded, kind)
    assert loaded.name == name


@pytest.mark.parametrize("name", sorted(datasets.ENTRIES))
def test_the_directory_is_handed_on(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as raised:
        load(name, tmp_path)
    assert str(tmp_path / datasets.ENTRIES[name].folder) in str(raised.value)


def test_sets_are_found_through_the_environment(data_dir: Path, monkeypatch) -> None:
    monkeypatch.setenv("SPARSEMEAN_DATA", str(data_dir))
    assert load("los-loop").name == "los-loop"


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_gives_the_file(kind, nowhere: Path) -> None:
    np.save(nowhere / "mine.npy", np.ones((2, 3)))
    loaded = load(kind("mine.npy"))
    assert isinstance(loaded, Stream)
    assert (loaded.name, loaded.vectors.shape) == ("mine.npy", (1, 2, 3))


@pytest.mark.parametrize("wrong", ["cifar10", "mnist.npy", "no/such/file.csv"])
def test_what_is_neither_is_told_with_the_known_names(wrong: str) -> None:
    told = f"'{wrong}' is neither a file nor a data set; known sets are {', '.join(names())}"
    with pytest.raises(InvalidInput, match=told):
        load(wrong)


@pytest.mark.parametrize("given", [pd.DataFrame({"x": [1.0]}), np.ones((2, 3)), [np.ones(3)]])
def test_arrays_and_tables_are_shown_what_takes_them(given) -> None:
    with pytest.raises(InvalidInput, match=r"was given a \w+; arrays and tables go straight into sm.estim"):
        load(given)
