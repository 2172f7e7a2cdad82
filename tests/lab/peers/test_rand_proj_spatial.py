"""Rand-Proj-Spatial: what is solved is its definition, it is unbiased, and its error is the formula's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.peers import Projections, RandProjSpatial, relative_error, unbiased_scale
from sparsemean.lab.peers.projections import hadamard
from sparsemean.theory import correlation


def decoded_by_eigenvalues(estimator: RandProjSpatial, projections: Projections, sent: np.ndarray) -> np.ndarray:
    """The definition: T of each eigenvalue of S, and its pseudo-inverse."""
    nodes, dim = projections.signs.shape
    r, rows = estimator.r(nodes), projections.matrix()
    eigenvalues, vectors = np.linalg.eigh(rows.T @ rows)
    T = np.where(eigenvalues > 1e-9, 1.0 + r * (eigenvalues - 1.0), np.inf)
    solved = vectors / T @ (vectors.T @ (rows.T @ sent.ravel()))
    return np.asarray(unbiased_scale(nodes, estimator.k / dim, r) / nodes * solved)


def spread_of(estimator: RandProjSpatial, vectors: np.ndarray, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """The estimates of so many draws, and their squared errors over the mean squared length."""
    rng = np.random.default_rng(1)
    estimates = np.array([estimator.estimate(vectors, rng) for _ in range(trials)])
    errors = np.sum((estimates - vectors.mean(axis=0)) ** 2, axis=1) / np.mean(np.sum(vectors**2, axis=1))
    return estimates, errors


def z(numbers: np.ndarray, expected: float) -> float:
    return float((numbers.mean() - expected) / (numbers.std(ddof=1) / math.sqrt(len(numbers))))


def test_the_transform_is_that_of_the_hadamard_matrix():
    matrix = np.array([[1.0]])
    for _ in range(5):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    vectors = np.random.default_rng(0).normal(size=(3, 32))
    np.testing.assert_allclose(hadamard(vectors), vectors @ matrix / math.sqrt(32), atol=1e-13)


def test_projections_are_orthonormal_and_back_is_their_transpose():
    rng = np.random.default_rng(0)
    projections = Projections.drawn(3, 5, 16, rng)
    vectors, rows = rng.normal(size=(3, 16)), projections.matrix().reshape(3, 5, 16)
    for own in rows:
        np.testing.assert_allclose(own @ own.T, np.eye(5), atol=1e-13)
    sent = projections.project(vectors)
    np.testing.assert_allclose(sent, np.einsum("ikd,id->ik", rows, vectors), atol=1e-13)
    np.testing.assert_allclose(projections.back(sent), np.einsum("ikd,ik->d", rows, sent), atol=1e-13)


@pytest.mark.parametrize("weighting", ["one", "avg", "max", 7.5, -0.5])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_what_is_solved_is_the_definition_by_eigenvalues(weighting, k):
    rng = np.random.default_rng(k)
    estimator, projections = RandProjSpatial(k, weighting), Projections.drawn(9, k, 32, rng)
    sent = projections.project(rng.normal(size=32) + 0.1 * rng.normal(size=(9, 32)))
    wanted = decoded_by_eigenvalues(estimator, projections, sent)
    assert np.linalg.norm(estimator.decode(projections, sent) - wanted) < 1e-5 * np.linalg.norm(wanted)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("r", [0.5, 1.0])
def test_over_all_signs_and_rows_it_is_unbiased_with_the_exact_scale(k, r):
    dim, nodes = 4, 2
    # A node's first sign does not matter: the opposite signs make the same rows, up to their sign.
    signs = [np.array([[1.0, *rest]]) for rest in itertools.product((-1.0, 1.0), repeat=dim - 1)]
    rows = [np.array([chosen]) for chosen in itertools.combinations(range(dim), k)]
    own = np.array([Projections(sign, row).matrix() for sign, row in itertools.product(signs, rows)])
    first, second = np.divmod(np.arange(len(own) ** 2), len(own))
    onto = own.transpose(0, 2, 1) @ own
    vectors = np.random.default_rng(0).normal(size=(nodes, dim))
    eigenvalues, bases = np.linalg.eigh(onto[first] + onto[second])
    T = np.where(eigenvalues > 1e-9, 1.0 + r * (eigenvalues - 1.0), np.inf)
    heard = (onto @ vectors[0])[first] + (onto @ vectors[1])[second]
    solved = np.einsum("cij,cj,ckj,ck->i", bases, 1.0 / T, bases, heard) / len(first)
    scale = nodes * dim / np.mean(np.sum(eigenvalues / T, axis=1))
    np.testing.assert_allclose(scale / nodes * solved, vectors.mean(axis=0), atol=1e-12)
    assert abs(unbiased_scale(nodes, k / dim, r) / scale - 1.0) < 0.7 / dim


def test_the_scale_is_that_of_the_eigenvalues_of_long_vectors():
    rng, dim = np.random.default_rng(0), 256
    for nodes, k, r in [(10, 26, 0.5), (10, 26, 0.9), (10, 77, 0.9), (3, 100, 0.5), (50, 3, 0.99)]:
        rows = Projections.drawn(nodes, k, dim, rng).matrix()
        values = np.linalg.eigvalsh(rows @ rows.T if nodes * k <= dim else rows.T @ rows)
        found = nodes * dim / np.sum(values / (1.0 + r * (values - 1.0)))
        assert unbiased_scale(nodes, k / dim, r) == pytest.approx(found, rel=2.0 / dim)


def test_it_is_unbiased_and_has_the_error_of_the_formula():
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=128) + 0.5 * rng.normal(size=(6, 128))
    r1, r2 = correlation(vectors)
    for weighting in ("avg", r2 / r1):
        estimator = RandProjSpatial(32, weighting)
        estimates, errors = spread_of(estimator, vectors, 64)
        along = estimates @ vectors.mean(axis=0) / np.sum(vectors.mean(axis=0) ** 2)
        assert abs(z(along, 1.0)) < 4.0
        assert abs(z(errors, relative_error(6, 0.25, estimator.r(6), r2 / r1 / 5))) < 4.0
        deviations = (estimates.mean(axis=0) - vectors.mean(axis=0)) / (estimates.std(axis=0, ddof=1) / 8.0)
        assert np.abs(deviations).max() < 4.5


def test_with_equal_weights_for_all_its_error_is_that_of_rand_k():
    vectors = np.random.default_rng(2).normal(size=(4, 64)) * np.arange(1, 5)[:, None]
    estimates, _ = spread_of(RandProjSpatial(16, "one"), vectors, 200)
    errors = np.sum((estimates - vectors.mean(axis=0)) ** 2, axis=1)
    assert abs(z(errors, (64 / 16 - 1.0) * np.sum(vectors**2) / 16)) < 4.0


def test_padding_costs_what_the_formula_says():
    vectors = np.random.default_rng(2).normal(size=(4, 40))
    estimates, errors = spread_of(RandProjSpatial(16, "one"), vectors, 200)
    assert estimates.shape[1] == 40
    assert abs(z(errors, (64 / 16 - 1.0) * (39 / 63) / 4)) < 4.0


@pytest.mark.parametrize(("nodes", "k", "published"), [(10, 100, 0.024), (50, 20, 0.024), (10, 20, 4.12)])
def test_the_published_errors_of_identical_vectors(nodes, k, published):
    assert relative_error(nodes, k / 1024, 1.0, 1.0) == pytest.approx(published, abs=5e-4)


def test_max_has_no_finite_error_where_nodes_just_suffice_and_differ():
    assert relative_error(10, 0.1, 1.0, 1.0) == 0.0
    assert relative_error(10, 0.1, 1.0, 0.9) == math.inf
    assert relative_error(10, 0.05, 1.0, 0.9) > relative_error(10, 0.05, 0.9, 0.9)


@pytest.mark.parametrize(("dim", "nodes", "k", "trials"), [(1024, 10, 20, 5), (64, 10, 6, 20)])
def test_identical_vectors_have_the_error_of_least_squares(dim, nodes, k, trials):
    vectors = np.tile(np.random.default_rng(0).normal(size=dim), (nodes, 1))
    _, errors = spread_of(RandProjSpatial(k, "max"), vectors, trials)
    assert abs(z(errors, dim / (nodes * k) - 1.0)) < 4.0


def test_identical_vectors_are_exact_where_nodes_send_enough():
    vectors = np.tile(np.random.default_rng(0).normal(size=32), (5, 1))
    estimate = RandProjSpatial(16, "max").estimate(vectors, np.random.default_rng(1))
    np.testing.assert_allclose(estimate, vectors[0], atol=1e-5)


@pytest.mark.parametrize("weighting", ["one", "avg", "max"])
def test_everything_sent_is_exact_and_zeros_stay_zeros(weighting):
    vectors = np.random.default_rng(0).normal(size=(3, 16))
    estimator, rng = RandProjSpatial(16, weighting), np.random.default_rng(1)
    np.testing.assert_allclose(estimator.estimate(vectors, rng), vectors.mean(axis=0), atol=1e-6)
    weights = [1.0, 0.0, 3.0]
    wanted = np.average(vectors, axis=0, weights=weights)
    np.testing.assert_allclose(estimator.estimate(vectors, rng, weights), wanted, atol=1e-6)
    assert not RandProjSpatial(2, weighting).estimate(np.zeros((3, 16)), rng).any()


def test_one_node_is_scaled_by_d_over_k_with_every_weighting():
    vector = np.random.default_rng(0).normal(size=(1, 8))
    estimates = [RandProjSpatial(4, name).estimate(vector, np.random.default_rng(1)) for name in ("one", "avg", "max")]
    assert np.array_equal(estimates[0], estimates[1])
    assert np.array_equal(estimates[0], estimates[2])
    np.testing.assert_allclose(estimates[0] @ vector[0], 0.5 * np.sum(estimates[0] ** 2), rtol=1e-5)  # x̂ = 2Px


def test_a_payload_has_a_header_and_four_bytes_a_value():
    assert RandProjSpatial(25).payload_bytes == 64 + 100


@pytest.mark.parametrize(
    ("k", "weighting", "vectors", "why"),
    [
        (0, "avg", np.ones((2, 4)), "from 1 on"),
        (5, "avg", np.ones((2, 4)), "at most 4"),
        (2, "best", np.ones((3, 4)), '"one", "max", "avg"'),
        (2, 2.5, np.ones((3, 4)), "n - 1 = 2 at most"),
        (2, -1.0, np.ones((3, 4)), "above -1"),
        (2, "avg", np.ones(4), r"shape \(n, d\)"),
    ],
)
def test_bad_settings_are_refused_with_the_remedy(k, weighting, vectors, why):
    with pytest.raises(InvalidInput, match=why):
        RandProjSpatial(k, weighting).estimate(vectors, np.random.default_rng(0))
