"""Fashion-MNIST: 60,000 + 10,000 grey pictures of clothes, 28×28, ten classes."""

from __future__ import annotations

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import idx
from sparsemean.lab.datasets.entry import DatasetEntry, Download, File
from sparsemean.lab.datasets.find import Directory, contents, places
from sparsemean.lab.datasets.images import Bytes, Images, Labels, unit_rows

PIXELS = 28 * 28
CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

ENTRY = DatasetEntry(
    name="fashion-mnist",
    folder="fashion-mnist",
    files=(
        File("train-images-idx3-ubyte", 47_040_016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
        File("train-labels-idx1-ubyte", 60_008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
        File("t10k-images-idx3-ubyte", 7_840_016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
        File("t10k-labels-idx1-ubyte", 10_008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
    ),
    page="https://github.com/zalandoresearch/fashion-mnist",
    licence="MIT, Copyright 2017 Zalando SE",
    attribution="Xiao, Rasul, Vollgraf, Fashion-MNIST, arXiv:1708.07747; Zalando SE, MIT licence",
    base_url=(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
        "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion"
    ),
    downloads=(
        Download("train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        Download("train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        Download("t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        Download("t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
)


def load(directory: Directory | None = None) -> Images:
    """The official training and test pictures as rows of 784 pixels."""
    parts = [idx.array(content, name) for name, content in contents(ENTRY, places(directory)).items()]
    train_x, train_y = pictures(*parts[:2])
    test_x, test_y = pictures(*parts[2:])
    return Images(ENTRY.name, unit_rows([train_x]), train_y, unit_rows([test_x]), test_y, CLASSES, ENTRY.attribution)


def pictures(pixels: Bytes, classes: Bytes) -> tuple[Bytes, Labels]:
    """Pixels and labels that belong together, or an error that says why they do not."""
    if pixels.shape != (len(pixels), 28, 28) or classes.shape != (len(pixels),):
        raise InvalidInput(f"expected N pictures of 28×28 and N labels, got shapes {pixels.shape} and {classes.shape}")
    if classes.max(initial=0) >= len(CLASSES):
        raise InvalidInput(f"labels run from 0 to {len(CLASSES) - 1}, got {classes.max()}")
    return pixels, classes.astype(np.int64)
