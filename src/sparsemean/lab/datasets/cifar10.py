"""CIFAR-10, the binary version: 50,000 + 10,000 colour pictures, 32×32, ten classes.

The python version is made of pickles, which may run any code when opened; it is not supported.
"""

from __future__ import annotations

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.entry import DatasetEntry, Download, File
from sparsemean.lab.datasets.find import Directory, contents, places
from sparsemean.lab.datasets.images import Bytes, Images, Labels, unit_rows

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PIXELS = 3 * 32 * 32
BATCH = 10_000 * (1 + PIXELS)

ENTRY = DatasetEntry(
    name="cifar-10",
    folder="cifar-10/cifar-10-batches-bin",
    files=(
        File("data_batch_1.bin", BATCH, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        File("data_batch_2.bin", BATCH, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        File("data_batch_3.bin", BATCH, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        File("data_batch_4.bin", BATCH, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        File("data_batch_5.bin", BATCH, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        File("test_batch.bin", BATCH, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    ),
    page="https://www.cs.toronto.edu/~kriz/cifar.html (the binary version)",
    licence="none stated by its authors, who ask for a citation; do not redistribute",
    attribution="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009 (CIFAR-10)",
    base_url="https://www.cs.toronto.edu/~kriz",
    downloads=(Download("cifar-10-binary.tar.gz", "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),),
)


def load(directory: Directory | None = None) -> Images:
    """The official training and test pictures as rows of 1,024 red, 1,024 green and 1,024 blue pixels."""
    batches = [records(content, name) for name, content in contents(ENTRY, places(directory)).items()]
    pixels, labels = [pixels for pixels, _ in batches], [labels for _, labels in batches]
    return Images(
        ENTRY.name,
        unit_rows(pixels[:-1]),
        np.concatenate(labels[:-1]),
        unit_rows(pixels[-1:]),
        labels[-1],
        CLASSES,
        ENTRY.attribution,
    )


def records(content: bytes, name: str) -> tuple[Bytes, Labels]:
    """Pixels and labels of one batch: per picture a byte for the class, then its pixels."""
    if not content or len(content) % (1 + PIXELS):
        raise InvalidInput(f"{name} has {len(content)} bytes, not a multiple of the {1 + PIXELS} that a picture takes")
    rows = np.frombuffer(content, np.uint8).reshape(-1, 1 + PIXELS)
    if rows[:, 0].max() >= len(CLASSES):
        raise InvalidInput(f"{name} has a label {rows[:, 0].max()}; labels run from 0 to {len(CLASSES) - 1}")
    return rows[:, 1:], rows[:, 0].astype(np.int64)
