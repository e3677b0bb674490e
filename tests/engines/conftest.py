"""Fixtures of the tests of engines."""

from collections.abc import Iterator

import pytest

from crfit import _native


@pytest.fixture(params=["v2", "v3", "v4"])
def cpu_level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Kernels of each CPU level in turn; skips levels that this machine lacks."""
    before = _native.cpu_level()
    try:
        _native.choose_cpu_level(request.param)
    except ValueError as error:
        pytest.skip(str(error))
    yield request.param
    _native.choose_cpu_level(before)
