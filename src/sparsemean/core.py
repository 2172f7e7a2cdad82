"""The former name of ``sparsemean.extending``, for programs written before."""

from __future__ import annotations

import warnings

from sparsemean.extending import *  # noqa: F403

warnings.warn("sparsemean.core is now sparsemean.extending", DeprecationWarning, stacklevel=2)
