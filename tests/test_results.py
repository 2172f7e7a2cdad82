"""What the server hands back, as people see it."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm


@pytest.mark.parametrize(("nodes", "dim"), [(1, 1), (40, 784), (3, 100_000)])
def test_an_estimate_prints_as_one_short_line(nodes, dim):
    estimate = sm.estimate_mean(np.ones((nodes, dim)), sm.named("rand-k", k=0.5))
    printed = repr(estimate)
    assert len(printed) < 140
    assert "\n" not in printed
    assert f"mean=array of {dim}" in printed
    assert f"nodes={nodes}," in printed
    assert f"bytes={estimate.bytes}," in printed
    said = "unknown" if estimate.error is None else f"{estimate.error:.4g}"
    said += "" if estimate.error_se is None else f" ± {estimate.error_se:.2g}"
    if estimate.actual_error_interval is not None:
        said += ", actual {:.3g} to {:.3g}".format(*estimate.actual_error_interval)
    assert printed.endswith(f"error={said})")
    assert ("actual" in printed) == (dim > 1)  # of one coordinate all is sent
    assert str(estimate) == printed


def test_an_unknown_error_is_called_so():
    assert "error=unknown)" in repr(sm.estimate_mean(np.ones((3, 4)), sm.named("top-k", k=2)))
