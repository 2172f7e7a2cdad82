"""The sentence about the trade names what the numbers show."""

from __future__ import annotations

from sparsemean.lab.frontier import Frontier, Point, trade


def frontier(*points: tuple[str, float, float], zero_error: float = 0.9) -> Frontier:
    made = [Point(name, None, 5, size, nmse, 0.0, None, True, False, False) for name, size, nmse in points]
    return Frontier(tuple(made), zero_error, 4, 16, 1, 1, (100,))


def test_it_names_the_knee_the_cheapest_and_the_dense_means():
    points = [("rand-k int8", 100.0, 0.5), ("rand-k-hybrid int8", 400.0, 0.4), ("identity int8", 1064.0, 1e-6)]
    said = trade(frontier(*points, ("identity float32", 4064.0, 9e-7), ("rand-k float32", 90.0, 2.0)))
    assert said == (
        "The knee of the front is identity int8 (1.06 KB, 1·10⁻⁶); the cheapest that is better than answering 0 is "
        "rand-k int8 (100 bytes, 0.5); dense means: identity float32 (4.06 KB, 9·10⁻⁷)."
    )


def test_it_says_where_nothing_is_better_than_answering_zero():
    assert "larger ones" in trade(frontier(("rand-k int8", 100.0, 1.5)))
    assert trade(frontier(("rand-k int8", 100.0, 0.5))).startswith("Only rand-k int8 (100 bytes, 0.5)")
    assert "Nothing" in trade(frontier())
