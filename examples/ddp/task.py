"""The pictures and the model: CIFAR-10 where it is found, the digits of scikit-learn otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from sparsemean.errors import SparseMeanError
from sparsemean.lab import datasets


@dataclass(frozen=True)
class Pictures:
    """Pictures for training and for testing, (number, channels, height, width), and their classes."""

    name: str
    train: Tensor
    train_classes: Tensor
    test: Tensor
    test_classes: Tensor

    @staticmethod
    def load(name: str | None, most: int) -> Pictures:
        """The named set, at most ``most`` pictures of it for training."""
        if name is None:
            try:
                return Pictures.load("cifar-10", most)
            except SparseMeanError as missing:
                print(f"taking the digits, since CIFAR-10 is not here: {missing}")
                name = "digits"
        shape = {"cifar-10": (3, 32, 32), "digits": (1, 8, 8)}[name]
        found = datasets.load(name)
        assert isinstance(found, datasets.Images)
        parts = (found.train_x[:most], found.train_y[:most], found.test_x, found.test_y)
        train, train_classes, test, test_classes = (torch.from_numpy(part.copy()) for part in parts)
        return Pictures(name, train.view(-1, *shape) - 0.5, train_classes, test.view(-1, *shape) - 0.5, test_classes)


def network(channels: int) -> nn.Module:
    """Three convolutions and a linear layer: 95,000 parameters or so."""
    torch.manual_seed(0)
    widths = (channels, 32, 64, 128)
    layers: list[nn.Module] = []
    for narrow, wide in pairwise(widths):
        layers += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.GroupNorm(8, wide), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))
