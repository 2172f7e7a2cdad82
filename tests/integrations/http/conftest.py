"""The service is an extra: without it these tests are skipped, and say why."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="pip install 'sparsemean[serve]'")
