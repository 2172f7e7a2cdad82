"""Handwritten digits that come with scikit-learn: 1,797 grey pictures, 8×8, ten classes."""

from __future__ import annotations

import numpy as np

from sparsemean.lab.datasets.find import Directory
from sparsemean.lab.datasets.images import Images
from sparsemean.lab.optional_modules import optional

NAME = "digits"
PACKAGE = ("sklearn", "the set digits", "lab")
PIXELS = 8 * 8
TRAIN = 1437
ATTRIBUTION = (
    "Alpaydin, Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998, "
    "doi 10.24432/C50P49, CC BY 4.0; as shipped with scikit-learn"
)


def load(directory: Directory | None = None) -> Images:
    """The first 1,437 pictures for training and the last 360 for testing, as rows of 64 pixels.

    The set comes without a split. Its order is kept: neighbours are probably by the same hand, and shuffling would put
    that hand on both sides. ``directory`` is not used; the package carries the data.
    """
    _, purpose, extra = PACKAGE
    bunch = optional("sklearn.datasets", purpose, extra).load_digits()
    pixels, labels = (bunch.data / 16).astype(np.float32), bunch.target.astype(np.int64)
    classes = tuple(str(digit) for digit in range(10))
    return Images(NAME, pixels[:TRAIN], labels[:TRAIN], pixels[TRAIN:], labels[TRAIN:], classes, ATTRIBUTION)
