"""The image sets: parsers on tiny files, and the real files where they are."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import Images, cifar10, digits, fashion_mnist, idx
from sparsemean.lab.datasets.images import unit_rows


def as_idx(array) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes(header + array.astype(np.uint8).tobytes())


def check(images: Images, pixels: int, train: int, test: int) -> None:
    """What holds of every image set."""
    assert images.train_x.shape == (train, pixels)
    assert images.test_x.shape == (test, pixels)
    assert images.train_x.dtype == images.test_x.dtype == np.float32
    assert images.train_y.dtype == images.test_y.dtype == np.int64
    assert images.train_y.shape == (train,)
    assert images.test_y.shape == (test,)
    for x in (images.train_x, images.test_x):
        assert (x.min(), x.max()) == (0, 1)
    assert set(images.train_y.tolist()) == set(images.test_y.tolist()) == set(range(10))
    assert len(set(images.classes)) == 10
    assert images.attribution


def test_idx_gives_back_what_was_written() -> None:
    array = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    assert np.array_equal(idx.array(as_idx(array), "x"), array)
    assert idx.array(as_idx(np.zeros((0, 28, 28))), "x").shape == (0, 28, 28)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: b"", "x is no idx file of unsigned bytes: it begins with nothing"),
        (lambda data: data[:3], "x is no idx file of unsigned bytes: it begins with 00 00 08"),
        (lambda data: b"\x1f\x8b" + data, "x is no idx file of unsigned bytes: it begins with 1f 8b 00 00"),
        (lambda data: data[:2] + b"\x0d" + data[3:], "x is no idx file of unsigned bytes: it begins with 00 00 0d 02"),
        (lambda data: data[:10], "x ends within its header, after 10 of 12 bytes"),
        (lambda data: data[:-1], r"x should hold 6 bytes for shape \(2, 3\), but holds 5"),
        (lambda data: data + b"\0", r"x should hold 6 bytes for shape \(2, 3\), but holds 7"),
        (lambda data: data[:4] + b"\xff" * 8, r"x should hold \d+ bytes for shape \(4294967295, 4294967295\), but"),
    ],
)
def test_idx_names_what_is_wrong(damage, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        idx.array(damage(as_idx(np.ones((2, 3)))), "x")


def test_fashion_pictures_and_labels_must_belong_together() -> None:
    pixels, classes = np.zeros((2, 28, 28), np.uint8), np.array([0, 9], np.uint8)
    assert fashion_mnist.pictures(pixels, classes)[1].tolist() == [0, 9]
    with pytest.raises(InvalidInput, match=r"got shapes \(2, 28, 28\) and \(1,\)"):
        fashion_mnist.pictures(pixels, classes[:1])
    with pytest.raises(InvalidInput, match=r"got shapes \(2, 28, 27\) and \(2,\)"):
        fashion_mnist.pictures(pixels[..., 1:], classes)
    with pytest.raises(InvalidInput, match="labels run from 0 to 9, got 10"):
        fashion_mnist.pictures(pixels, classes + np.uint8(1))


def test_cifar_records_are_a_label_and_its_pixels() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (3, 3073)).astype(np.uint8)
    rows[:, 0] = [3, 0, 9]
    pixels, labels = cifar10.records(rows.tobytes(), "batch")
    assert np.array_equal(pixels, rows[:, 1:])
    assert labels.tolist() == [3, 0, 9]


@pytest.mark.parametrize("size", [0, 1, 3072, 3074])
def test_cifar_names_a_truncated_batch(size: int) -> None:
    with pytest.raises(InvalidInput, match=f"batch has {size} bytes, not a multiple of the 3073 that a picture takes"):
        cifar10.records(bytes(size), "batch")


def test_cifar_names_an_impossible_label() -> None:
    with pytest.raises(InvalidInput, match="batch has a label 10; labels run from 0 to 9"):
        cifar10.records(b"\x0a" + bytes(3072), "batch")


def test_every_byte_becomes_its_share_of_255() -> None:
    every = np.arange(256, dtype=np.uint8)
    rows = unit_rows([every.reshape(2, 8, 16), every.reshape(2, 8, 16)])
    assert rows.dtype == np.float32
    assert np.array_equal(rows.ravel(), np.tile(np.arange(256, dtype=np.float32) / np.float32(255), 2))


@pytest.mark.parametrize(("load", "first"), [(fashion_mnist.load, "train-images-idx3-ubyte"), (cifar10.load, "data_b")])
def test_a_set_that_is_not_there_is_told(load, first: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"{first}\S* \([0-9a-f]{{64}}\)"):
        load(tmp_path)


def test_a_damaged_real_name_is_told(tmp_path: Path) -> None:
    for file in fashion_mnist.ENTRY.files:
        (tmp_path / "fashion-mnist").mkdir(exist_ok=True)
        (tmp_path / "fashion-mnist" / file.name).write_bytes(b"\0")
    with pytest.raises(InvalidInput, match="train-images-idx3-ubyte is not the expected file"):
        fashion_mnist.load(tmp_path)


def test_fashion_mnist_is_the_known_set(data_dir: Path) -> None:
    images = fashion_mnist.load(data_dir)
    check(images, 784, 60_000, 10_000)
    assert np.bincount(images.train_y).tolist() == [6_000] * 10
    assert np.bincount(images.test_y).tolist() == [1_000] * 10
    assert images.train_x.mean(dtype=np.float64) == pytest.approx(0.2860, abs=5e-5)
    assert images.train_x.std(dtype=np.float64) == pytest.approx(0.3530, abs=5e-5)
    assert images.classes[images.train_y[0]] == "Ankle boot"


def test_cifar_10_is_the_known_set(data_dir: Path) -> None:
    images = cifar10.load(data_dir)
    check(images, 3_072, 50_000, 10_000)
    assert np.bincount(images.train_y).tolist() == [5_000] * 10
    assert np.bincount(images.test_y).tolist() == [1_000] * 10
    means = images.train_x.mean(axis=0, dtype=np.float64).reshape(3, 1024).mean(axis=1)
    squares = np.array([np.vdot(row, row) for row in images.train_x.reshape(-1, 1024)], np.float64).reshape(-1, 3)
    deviations = np.sqrt(squares.sum(axis=0) / (50_000 * 1024) - means**2)
    assert means == pytest.approx([0.4914, 0.4822, 0.4465], abs=5e-5)
    assert deviations == pytest.approx([0.2470, 0.2435, 0.2616], abs=5e-5)
    assert [images.classes[label] for label in images.train_y[:3]] == ["frog", "truck", "truck"]


def test_digits_are_those_of_scikit_learn() -> None:
    images = digits.load()
    check(images, 64, 1_437, 360)
    assert images.train_y[:10].tolist() == list(range(10))
    assert set(np.unique(images.train_x * 16).tolist()) == set(range(17))


def test_without_scikit_learn_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InvalidInput, match=r"the set digits needs sklearn: pip install 'sparsemean\[lab\]'"):
        digits.load()
