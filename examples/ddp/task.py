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


def convolutions(channels: int) -> nn.Module:
    """Three convolutions and a linear layer: 95,000 parameters or so."""
    widths = (channels, 32, 64, 128)
    layers: list[nn.Module] = []
    for narrow, wide in pairwise(widths):
        layers += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.GroupNorm(8, wide), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))


class Words(nn.Module):
    """2 × 2 patches of grey pixels as words: four levels a pixel, so that there are 256 of them."""

    def forward(self, pictures: Tensor) -> Tensor:
        levels = ((pictures.mean(dim=1) + 0.5) * 4.0).long().clamp(0, 3)
        corners = (levels[:, y::2, x::2] for y in (0, 1) for x in (0, 1))
        words: Tensor = sum(corner << 2 * place for place, corner in enumerate(corners))  # type: ignore[assignment]
        return words


class Embedded(nn.Module):
    """A vector of each word, as channels of a picture."""

    def __init__(self, words: int, size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, size)

    def forward(self, words: Tensor) -> Tensor:
        vectors: Tensor = self.table(words)
        return vectors.movedim(-1, 1)


def embedding(channels: int) -> nn.Module:
    """An embedding, two convolutions with batch norm and a linear layer: 129,000 parameters."""
    layers: list[nn.Module] = [Words(), Embedded(256, 64)]
    for narrow, wide in ((64, 64), (64, 128)):
        layers += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


MODELS = {"convolutions": convolutions, "embedding": embedding}


def network(model: str, channels: int, seed: int = 0) -> nn.Module:
    """One of ``MODELS``, with initial weights of this seed."""
    torch.manual_seed(seed)
    return MODELS[model](channels)
