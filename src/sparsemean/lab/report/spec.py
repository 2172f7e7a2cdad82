"""What each figure shows: its words, its axes, and what makes a panel. Drawing it is told elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

KEYS = ("task", "data", "nodes", "rate", "budget", "split", "share")
"""Columns that tell settings apart. One that has several values in a table makes panels, the last one varying fastest."""


@dataclass(frozen=True)
class Quantity:
    """One row of panels."""

    columns: tuple[str, ...]
    """The first of these that the table has is drawn."""
    label: str
    log: bool | None = None
    """None: logarithmic where the values span more than a factor of 30."""
    theory: str = ""
    """The column of what theory says, drawn beside what was measured."""
    theory_label: str = ""
    larger_is_better: bool = False
    ranked: bool = False
    """Whether the sentence above the figure names the best scheme by it."""


@dataclass(frozen=True)
class Spec:
    """One figure. ``kind`` is lines (with bands), points (measured points, lines of theory) or bars."""

    title: str
    caption: str
    quantities: tuple[Quantity, ...]
    x: str = "round"
    x_label: str = "round"
    kind: str = "lines"
    series: str = "scheme"
    x_log: bool = False
    no_panels: tuple[str, ...] = ("budget",)
    """Keys on which what is shown does not depend."""
    ceiling: bool = False
    """Whether n − 1, the largest R2/R1 there can be, and n/2 are marked."""


ERROR = Quantity(("mse", "nmse"), "error of the mean, ‖estimate − mean‖²", log=True, ranked=True)
OBJECTIVE = Quantity(("objective",), "objective")
RATIO = Quantity(("ratio",), "similarity of the nodes, R2/R1", log=False, larger_is_better=True)

BANDS = "Lines are means over seeds, bands two standard errors."

SPECS: dict[str, Spec] = {
    "mse-vs-ratio": Spec(
        title="Error of the mean against how alike the nodes are",
        caption="Error of the estimated mean against R2/R1, from −1 (the vectors cancel) over 0 (orthogonal) to n − 1 "
        "(all the same). Points are measured, lines are the exact formula of Theorem 1. Every scheme sends the same "
        "k of d coordinates; only the server's decoding differs.",
        quantities=(Quantity(("mse",), ERROR.label, theory="exact", theory_label="exact", ranked=True),),
        x="ratio",
        x_label="R2/R1",
        kind="points",
    ),
    "ratio-first-round": Spec(
        title="How alike real nodes are in the first round",
        caption="R2/R1 of the vectors in round one of power iteration. At 0 nothing can be gained over Rand-k; at n − 1 "
        "all vectors are the same.",
        quantities=(RATIO,),
        x="data",
        x_label="",
        kind="bars",
        series="split",
        no_panels=("share", "budget"),
        ceiling=True,
    ),
    "ratio-rounds": Spec(
        title="How alike real nodes stay over the rounds",
        caption=f"R2/R1 of the nodes' vectors in every round. {BANDS}",
        quantities=(RATIO,),
        series="split",
        no_panels=("share", "budget"),
        ceiling=True,
    ),
    "quadratic": Spec(
        title="Quadratic case study: who reaches the optimum?",
        caption="Gradient descent to the mean of Gaussian points, one on each node. Above, how far the iterate is from the "
        f"optimum, with Theorem 4's bound as a dotted line; below, the error of each round's mean. {BANDS}",
        quantities=(
            Quantity(
                ("objective",),
                "squared distance to the optimum",
                theory="bound",
                theory_label="bound of Theorem 4",
                log=True,
            ),
            ERROR,
        ),
    ),
    "power-iteration": Spec(
        title="Power iteration: the principal direction of images on many nodes",
        caption="Above, the distance of the iterate to the true principal eigenvector; below, the error of each round's "
        f"mean. {BANDS}",
        quantities=(Quantity(("objective",), "distance to the eigenvector"), ERROR),
    ),
    "kmeans": Spec(
        title="K-means: ten cluster centres of images on many nodes",
        caption="Above, the mean distance of an image to its centre; below, the error of the centres, summed over all. "
        f"{BANDS}",
        quantities=(Quantity(("objective",), "K-means objective"), ERROR),
    ),
    "logistic": Spec(
        title="Logistic regression: learning from the few gradient entries that arrive",
        caption=f"Training loss, accuracy on test images, and the error of each round's mean gradient. {BANDS}",
        quantities=(
            Quantity(("objective",), "training loss"),
            Quantity(("accuracy", "test_accuracy"), "test accuracy", log=False, larger_is_better=True),
            ERROR,
        ),
    ),
    "shared-memory": Spec(
        title="One vector of memory instead of one per node",
        caption="The server may remember its last estimate alone, O(d), instead of a vector for every node, O(nd). "
        f"Look who falls fastest at the start, and who keeps falling. {BANDS}",
        quantities=(OBJECTIVE, ERROR),
    ),
    "power-iteration-bytes": Spec(
        title="Power iteration with the same number of bytes for everyone",
        caption="As before, but each scheme may send as many bytes as any other in its panel, headers included: fewer "
        f"bits per value buy more coordinates. {BANDS}",
        quantities=(Quantity(("objective",), "distance to the eigenvector"), ERROR),
        no_panels=("share",),
    ),
    "kmeans-bytes": Spec(
        title="K-means with the same number of bytes for everyone",
        caption="As before, but each scheme may send as many bytes as any other in its panel, headers included. "
        f"{BANDS}",
        quantities=(Quantity(("objective",), "K-means objective"), ERROR),
        no_panels=("share",),
    ),
}


def spec_of(figure: str) -> Spec:
    """The figure's spec; one that is not listed shows objective and error against the round.

    >>> spec_of("my-own_try").title
    'My own try'
    """
    if figure in SPECS:
        return SPECS[figure]
    title = figure.replace("-", " ").replace("_", " ").strip()
    return Spec(title[:1].upper() + title[1:], BANDS, (OBJECTIVE, ERROR))


def in_order(figures: list[str]) -> list[str]:
    """As in the paper; those not listed last, in the alphabet.

    >>> in_order(["zebra", "kmeans", "mse-vs-ratio"])
    ['mse-vs-ratio', 'kmeans', 'zebra']
    """
    known = list(SPECS)
    return sorted(figures, key=lambda figure: (known.index(figure) if figure in known else len(known), figure))
