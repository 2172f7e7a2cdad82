"""The data, shared out among workers, and the model: Fashion-MNIST where it is found, else scikit-learn's digits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sparsemean.errors import SparseMeanError
from sparsemean.lab import datasets


@dataclass(frozen=True)
class Task:
    """Pictures as rows and their classes; ``widths`` are the model's layers."""

    name: str
    train: Tensor
    train_classes: Tensor
    test: Tensor
    test_classes: Tensor
    widths: tuple[int, ...]

    @staticmethod
    def load(name: str | None) -> Task:
        if name is None:
            try:
                return Task.load("fashion-mnist")
            except SparseMeanError as missing:
                print(f"taking the digits, since Fashion-MNIST is not here: {missing}")
                name = "digits"
        found = datasets.load(name)
        assert isinstance(found, datasets.Images)
        parts = (found.train_x, found.train_y, found.test_x, found.test_y)
        train, train_classes, test, test_classes = (torch.from_numpy(part.copy()) for part in parts)
        hidden = (1024, 256) if name == "fashion-mnist" else (128,)
        return Task(name, train, train_classes, test, test_classes, (train.shape[1], *hidden, 10))

    def model(self, seed: int) -> nn.Module:
        """A perceptron with ReLU: 1,068,810 parameters for Fashion-MNIST."""
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for narrow, wide in zip(self.widths, self.widths[1:], strict=False):
            layers += [nn.Linear(narrow, wide), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def batches(self, worker: int, workers: int, seed: int, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of one worker's share, for ever, shuffled anew each time it is through."""
        order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(seed))
        mine, draw = order[worker::workers], torch.Generator().manual_seed(1000 * seed + worker)
        while True:
            for rows in mine[torch.randperm(len(mine), generator=draw)].split(size):
                if len(rows) == size:
                    yield self.train[rows], self.train_classes[rows]

    @torch.no_grad()
    def held_out(self, model: nn.Module) -> tuple[float, float]:
        """Loss and accuracy on the test pictures."""
        loss = hits = 0.0
        for x, y in zip(self.test.split(1000), self.test_classes.split(1000), strict=True):
            logits = model(x)
            loss += float(nn.functional.cross_entropy(logits, y, reduction="sum"))
            hits += float((logits.argmax(dim=1) == y).sum())
        return loss / len(self.test), hits / len(self.test)
