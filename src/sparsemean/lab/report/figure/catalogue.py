"""The specs of all figures: those of the paper in its order, then ours. Captions say how to read a figure."""

from __future__ import annotations

from collections.abc import Iterable

from sparsemean.lab.report.figure.spec import Quantity, Spec

VERDICTS = ("claims", "theory")
"""Tables that are not figures."""
BANDS = "Lines are means over seeds, bands 95 % intervals by Student's t (± 4.3 standard errors for three seeds)."

ERROR = Quantity(("mse", "nmse"), "error of the mean, ‖estimate − mean‖²", log=True, ranked=True)
OBJECTIVE = Quantity(("objective",), "objective")
EIGENVECTOR = Quantity(("objective",), "distance to the eigenvector")
CLUSTERS = Quantity(("objective",), "mean squared distance to the centres")
LOSS = Quantity(("objective",), "training loss")
ACCURACY = Quantity(("accuracy", "test_accuracy"), "test accuracy", log=False, bounded=True, percent=True)
RATIO = Quantity(("ratio",), "similarity of the nodes, R2/R1", log=False, bounded=True)

SPECS: dict[str, Spec] = {
    "mse-vs-ratio": Spec(
        "Error of the mean against how alike the nodes are",
        "R2/R1 goes from −1 (the vectors cancel) over 0 (orthogonal) to n − 1 (all the same). Points are measured, "
        "lines are the exact formula of Theorem 1. Every scheme sends the same k of d coordinates; only the server's "
        "decoding differs. Opt is told R2/R1 and shows how low the others could get.",
        (Quantity(("mse",), ERROR.label, log=True, theory="exact", theory_label="exact"),),
        x="ratio",
        x_label="R2/R1",
        kind="points",
        own_scales=True,
        short="error by similarity",
        paper="2a, 6",
    ),
    "ratio-first-round": Spec(
        "How alike real nodes are in the first round",
        "At 0 nothing can be gained over Rand-k; at n − 1 (dashes) all vectors are the same. Rand-k-Spatial (Avg) is "
        "the best choice half-way, at n/2.",
        (RATIO,),
        x="data",
        x_label="",
        kind="bars",
        series="split",
        no_panels=("share",),
        ceiling=True,
        short="similarity",
        paper="2b",
    ),
    "ratio-rounds": Spec(
        "How alike real nodes stay over the rounds",
        f"The same number round by round; the dashed line is n − 1, where all vectors are the same. {BANDS}",
        (RATIO,),
        series="split",
        no_panels=("share",),
        ceiling=True,
        short="similarity over time",
        paper="7",
    ),
    "quadratic": Spec(
        "Quadratic case study: who reaches the optimum?",
        "Gradient descent to the mean of random points, one on each node. Above, how far the iterate is from the "
        "optimum, with Theorem 4's bound for Rand-k-Temporal as a thin dashed line; below, the error of each round's "
        f"mean. {BANDS}",
        (
            Quantity(
                ("objective",),
                "squared distance to the optimum",
                log=True,
                theory="bound",
                theory_label="bound of Theorem 4",
                theory_of="rand-k-temporal",
            ),
            ERROR,
        ),
        short="quadratic",
        paper="4",
    ),
    "power-iteration": Spec(
        "Power iteration: the principal direction of data on many nodes",
        "Above, the distance of the iterate to the true principal eigenvector; below, the error of each round's mean. "
        + BANDS,
        (EIGENVECTOR, ERROR),
        short="power",
        paper="5a, 5d, 8",
    ),
    "kmeans": Spec(
        "K-means: cluster centres of data on many nodes",
        f"Above, what K-means wants to be small; below, the error of the centres, summed over all of them. {BANDS}",
        (CLUSTERS, ERROR),
        short="K-means",
        paper="5b, 5e, 9",
    ),
    "logistic": Spec(
        "Logistic regression: learning from the few gradient entries that arrive",
        f"Training loss, accuracy on test data, and the error of each round's mean gradient. {BANDS}",
        (LOSS, ACCURACY, ERROR),
        short="logistic",
        paper="5c, 5f, 10",
    ),
    "logistic-variants": Spec(
        "Logistic regression with IID data, and with nodes that send their largest entries",
        "The paper suspects that the non-IID split is why Rand-k-Spatial fails: with IID data the same runs show it. "
        f"Top-k is biased; with error feedback nodes add what they left out to the next vector. {BANDS}",
        (LOSS, ACCURACY, ERROR, RATIO),
        short="logistic, variants",
    ),
    "shared-memory": Spec(
        "One vector of memory instead of one per node",
        "The server may remember its last estimate alone, O(d), instead of a vector for every node, O(nd). Look who "
        f"falls fastest at the start, and who keeps falling. {BANDS}",
        (OBJECTIVE, ERROR),
        short="O(d) memory",
        paper="11",
    ),
    "variants": Spec(
        "Other memories, and nodes that send their largest entries",
        f"What the paper says can be done without drawing it: a window, forgetting, and Top-k nodes. {BANDS}",
        (EIGENVECTOR, ERROR),
        short="variants",
    ),
    "encode-cost": Spec(
        "What encoding costs a node",
        "Processor time as a multiple of Rand-k's, measured in turns on the same vector; k = 0.1d. The decoders of the "
        "paper ask nothing else of nodes than Rand-k does; Wangni's and the induced compressor sort and weigh entries. "
        "Times differ from machine to machine.",
        (Quantity(("cost",), "encoding time over Rand-k's", log=False, bounded=True),),
        x="dim",
        x_label="",
        kind="bars",
        short="encoding",
    ),
    "power-iteration-bytes": Spec(
        "Power iteration with the same number of bytes for everyone",
        "Each scheme may send as many bytes as Rand-k with float32 values, headers included: fewer bits per value, or "
        f"coordinates that need not be sent, buy more values. {BANDS}",
        (EIGENVECTOR, ERROR),
        short="power, bytes",
    ),
    "kmeans-bytes": Spec(
        "K-means with the same number of bytes for everyone",
        f"Each scheme may send as many bytes as Rand-k with float32 values, headers included. {BANDS}",
        (CLUSTERS, ERROR),
        short="K-means, bytes",
    ),
    "beyond-power": Spec(
        "Past the paper: power iteration",
        "Adaptive decoders take the correlation from what arrives; the hybrid memory remembers every node and all of "
        f"them together, and fits how much of each to expect. Every scheme sends the same bytes. {BANDS}",
        (EIGENVECTOR, ERROR),
        short="beyond: power",
    ),
    "beyond-kmeans": Spec(
        "Past the paper: K-means",
        f"Correlation and memory are fitted for each cluster by itself. {BANDS}",
        (CLUSTERS, ERROR),
        short="beyond: K-means",
    ),
    "beyond-logistic": Spec(
        "Past the paper: logistic regression, where nodes disagree",
        "The paper's O(d) memory feeds its own error back and leaves all bounds; the stable one and the hybrid "
        f"cannot. {BANDS}",
        (LOSS, ACCURACY, ERROR),
        short="beyond: logistic",
    ),
    "few-bits": Spec(
        "Past the paper: one bit a coordinate",
        "As many bytes as an eighth of the coordinates, header apart, scales counted: many values of few bits, or few "
        f"of many. {BANDS}",
        (EIGENVECTOR, ERROR),
        no_panels=("share",),
        short="few bits",
    ),
    "few-bits-alike": Spec(
        "Past the paper: nearly equal vectors in few bits",
        "Single rounds of n = 10 Gaussian vectors with R2/R1 = 8.9 of 9; 3.2 bits a coordinate, scales counted.",
        (Quantity(("nmse",), "error relative to the mean of ‖x_i‖²", log=True),),
        x="data",
        x_label="",
        kind="bars",
        no_panels=("share",),
        short="few bits, alike",
    ),
    "thin-links": Spec(
        "Past the paper: every second node on a thin link",
        "Half of the nodes send 10 % of their coordinates, the others 1 %; every decoder stays unbiased, because each "
        f"share has its own scale. {BANDS}",
        (EIGENVECTOR, ERROR),
        short="thin links",
    ),
    "designed-correlation": Spec(
        "Designed draws: error against how far the nodes are from equal",
        "Single rounds of n = 10 unit vectors, every two of the same correlation: orthogonal at the right, nearly "
        "equal at the left. In a balanced draw the nodes share out the coordinates evenly; Opt draws independently "
        "and is told R2/R1, which balanced draws are not. Points are measured, lines are the exact formula. Absent "
        "nodes leave holes in the balance; who is asked out of many does not matter, since slots are dealt among "
        "those asked.",
        (Quantity(("mse",), "error relative to ‖x‖²", log=True, theory="exact", theory_label="exact"),),
        x="apart",
        x_label="1 − (R2/R1)/(n − 1)",
        x_log=True,
        kind="points",
        baseline="rand-k-spatial-opt",
        ours="rand-k-balanced",
        short="designed: similarity",
    ),
    "designed-equal": Spec(
        "Designed draws: identical vectors",
        "d = 1,024; 10 nodes send 100 coordinates each, or 50 nodes 20. A balanced draw leaves out 24 coordinates and "
        "sends no other twice: its expected error is (d/k − n)/n = 0.024.",
        (Quantity(("mse",), "error relative to ‖x‖²", log=True),),
        x="nodes",
        x_label="",
        kind="bars",
        no_panels=("share",),
        baseline="rand-k-spatial-opt",
        ours="rand-k-balanced",
        short="designed: equal",
    ),
    "designed-weights": Spec(
        "Designed draws: nodes of unequal weight",
        "Single rounds of 30 nodes with lognormal weights, σ = 1, k = 0.2d on average. Opt, told R2/R1, and balanced "
        "draws lose what they gain with equal weights, unless coordinates are divided by the weight that came (ratio, "
        "biased) or nodes send in proportion to their weight (unbiased).",
        (Quantity(("mse",), "error relative to ‖x‖²", log=True),),
        x="apart",
        x_label="1 − (R2/R1)/(n − 1)",
        kind="bars",
        no_panels=("share",),
        baseline="rand-k-spatial-opt",
        short="designed: weights",
    ),
    "designed-power": Spec(
        "Designed draws: power iteration",
        "Balance over nodes matters in the first round, where no memory helps yet; later the hybrid memory expects "
        "what is similar. Epochs, in which each node sends every coordinate before it repeats one, go on from there: "
        f"the server knows least of what has waited longest. {BANDS}",
        (EIGENVECTOR, ERROR),
        baseline="rand-k-hybrid",
        ours="rand-k-epochs-hybrid",
        short="designed: power",
    ),
    "designed-kmeans": Spec(
        "Designed draws: K-means",
        f"Ten centres as blocks, each with the weights of its cluster's sizes. {BANDS}",
        (CLUSTERS, ERROR),
        baseline="rand-k-hybrid",
        ours="rand-k-epochs-hybrid",
        short="designed: K-means",
    ),
    "designed-weather": Spec(
        "Designed draws: a month of weather",
        f"37 stations that are similar and change from day to day: 9 and 18 of 89 values each. {BANDS}",
        (ERROR,),
        baseline="rand-k-hybrid",
        all_rounds=True,
        short="designed: weather",
    ),
    "designed-change": Spec(
        "Designed draws: all vectors change at once",
        "30 nodes whose vectors have come to rest and are all replaced in the same round. Epochs know them exactly by "
        "then, and have to notice that they know nothing any more. The more alike the new vectors are, the longer "
        f"balanced draws are better than going on with an epoch. {BANDS}",
        (ERROR,),
        baseline="rand-k",
        all_rounds=True,
        short="designed: change",
    ),
    "designed-dither": Spec(
        "Designed draws: few-bit values with a common scale",
        "Gaussian vectors, new in every round; all is sent, or a fifth. With a common scale the senders of a "
        "coordinate share out the dither, so that the noise of nodes with equal values cancels as on a finer grid. "
        f"{BANDS}",
        (Quantity(("nmse",), "error relative to ‖mean‖²", log=True),),
        x="correlation",
        x_label="(R2/R1)/(n − 1)",
        series="split",
        no_panels=("share",),
        baseline="own scales",
        ours="common scale",
        own_scales=True,
        short="designed: dither",
    ),
    "designed-logistic": Spec(
        "Designed draws: logistic regression, where nodes disagree",
        "The nodes' gradients nearly cancel, R2 < 0: there is nothing that balance could spread evenly, and it can "
        f"lose up to 1/(1 − p) times. {BANDS}",
        (LOSS, ACCURACY, ERROR),
        baseline="rand-k-hybrid",
        all_rounds=True,
        short="designed: logistic",
    ),
    "designed-batches": Spec(
        "Designed draws: stochastic gradients",
        "Batches of 32 rows a node. At first gradients have a direction in common; later what is left is mostly the "
        f"noise of the batches, which they do not. {BANDS}",
        (LOSS, ACCURACY, ERROR),
        baseline="rand-k-hybrid",
        all_rounds=True,
        short="designed: batches",
    ),
    "frontier-nodes": Spec(
        "Error against bytes: what a node may know",
        "Power iteration at the bytes of whole vectors in few bits a value (eden), header included. Nodes that keep "
        "and hear nothing leave it to the server to remember; nodes that hear the last mean send the difference to "
        "it, nodes that keep a vector the difference to that. Auto chooses from round to round, for each kind of node. "
        f"{BANDS}",
        (ERROR,),
        baseline="",
        tall=True,
        short="bytes: nodes",
    ),
    "frontier-gaussian": Spec(
        "Error against bytes: Gaussian vectors by how alike they are",
        "n = 10, vectors new in every round; all values in as many bits as fit (eden), a share of them in int8 by "
        "balanced draws, and auto, which chooses by what it has seen: mean over all rounds but the first.",
        (Quantity(("nmse",), "error relative to ‖x‖²", log=True),),
        x="bytes",
        x_label="bytes per node and round, header included",
        kind="joined",
        x_log=True,
        no_panels=("share",),
        baseline="identity eden",
        ours="auto",
        short="bytes: Gaussian",
    ),
    "frontier-network": Spec(
        "Error against bytes: updates of a federated network",
        "Digits, 64, 300 and 10 units, 8 nodes whose labels are dealt by Dirichlet's law (0.5); 4,566 bytes a node, "
        f"that is 1.6 bits a parameter. Nodes count by their rows. {BANDS}",
        (ACCURACY, Quantity(("nmse",), "error relative to ‖x‖²", log=True, ranked=True)),
        baseline="rand-k int4",
        short="bytes: network",
    ),
}


def spec_of(figure: str) -> Spec:
    """The spec of a figure; one that is not listed shows objective and error against the round.

    >>> spec_of("my-own_try").title
    'My own try'
    """
    if figure in SPECS:
        return SPECS[figure]
    title = figure.replace("-", " ").replace("_", " ").strip()
    return Spec(title[:1].upper() + title[1:], BANDS, (OBJECTIVE, ERROR), short=title)


def figure_names(tables: Iterable[str]) -> list[str]:
    """The figures among the names of tables: as listed here, then the others in alphabetical order.

    >>> figure_names(["zebra", "kmeans", "claims", "mse-vs-ratio"])
    ['mse-vs-ratio', 'kmeans', 'zebra']
    """
    known = list(SPECS)
    figures = [name for name in tables if name not in VERDICTS]
    return sorted(figures, key=lambda figure: (known.index(figure) if figure in known else len(known), figure))
