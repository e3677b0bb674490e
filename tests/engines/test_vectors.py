import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import vectors

PART = 1 << 16  # elements per task of the native core
SIZES = [1, 5, PART, PART + 1, 3 * PART + 7]


@pytest.fixture(params=SIZES)
def data(request):
    rng = np.random.default_rng(request.param)
    n = request.param
    w = rng.normal(size=n) * (rng.random(n) < 0.5)
    return w, 2 * rng.normal(size=n), rng.normal(size=n)


def test_dot_norms_axpy(data):
    w, g, d = data
    assert vectors.dot(w, g) == pytest.approx(w @ g, rel=1e-12, abs=1e-12)
    inf, two = vectors.norms(g)
    assert inf == np.abs(g).max()
    assert two == pytest.approx(np.linalg.norm(g), rel=1e-13)
    out = np.empty_like(w)
    vectors.axpy(w, -0.3, d, out)
    np.testing.assert_allclose(out, w - 0.3 * d, rtol=1e-15, atol=1e-15)


def test_norms_show_nan_and_infinity_in_any_block():
    g = np.zeros(3 * PART)
    g[-1] = np.nan
    assert np.isnan(vectors.norms(g)).all()
    g[-1], g[0] = np.inf, 1.0
    assert vectors.norms(g) == (np.inf, np.inf)
    assert vectors.norms(np.zeros(0)) == (0.0, 0.0)


def test_pseudo_gradient(data):
    w, g, _ = data
    l1 = 1.0
    expected = [
        gi + l1 * np.sign(wi) if wi != 0 else gi + l1 if gi < -l1 else gi - l1 if gi > l1 else 0.0
        for wi, gi in zip(w, g, strict=True)
    ]
    out = np.empty_like(w)
    assert vectors.pseudo_gradient(w, g, l1, out) == np.count_nonzero(w)
    np.testing.assert_allclose(out, expected, rtol=1e-15, atol=1e-15)
    assert vectors.pseudo_gradient_norms(w, g, l1) == vectors.norms(out)
    np.testing.assert_array_equal(np.where(np.abs(g) <= l1, w == 0, False), (out == 0) & (w == 0))


def test_align_and_project(data):
    w, g, d = data
    v = np.empty_like(w)
    vectors.pseudo_gradient(w, g, 1.0, v)
    aligned = d.copy()
    slope = vectors.align(aligned, v)
    np.testing.assert_array_equal(aligned, np.where(d * v < 0, d, 0.0))
    assert slope == pytest.approx(v @ aligned, rel=1e-12)
    assert slope <= 0
    out = np.empty_like(w)
    predicted = vectors.project_orthant(w, aligned, 3.0, v, out)
    moved = w + 3.0 * aligned
    orthant = np.where(w != 0, np.sign(w), -np.sign(v))
    np.testing.assert_allclose(out, np.where(moved * orthant > 0, moved, 0.0), rtol=1e-15)
    assert (np.sign(out) * orthant >= 0).all()
    assert predicted == pytest.approx(v @ (out - w), rel=1e-12)
    assert predicted <= 0


@pytest.mark.parametrize("weighted", [False, True], ids=["identity", "metric"])
def test_a_step_of_conjugate_gradients(data, weighted):
    s, res, d = (a.copy() for a in data)
    product = np.random.default_rng(9).normal(size=len(s))
    metric = np.random.default_rng(10).uniform(0.1, 2.0, size=len(s)) if weighted else None
    m = np.ones(len(s)) if metric is None else metric
    moved = res - 0.3 * product
    assert vectors.cg_residual(res, 0.3, product, metric) == pytest.approx(moved @ (moved / m), rel=1e-12)
    np.testing.assert_allclose(res, moved, rtol=1e-15, atol=1e-15)
    s_new, d_new = s + 0.7 * d, moved / m - 0.2 * d
    products = vectors.cg_direction(s, 0.7, d, res, -0.2, metric)
    np.testing.assert_allclose(s, s_new, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(d, d_new, rtol=1e-14, atol=1e-15)
    expected = s_new @ (m * s_new), s_new @ (m * d_new), d_new @ (m * d_new)
    np.testing.assert_allclose(products, expected, rtol=1e-11, atol=1e-11)


def test_another_array_library_gets_the_same_numbers(data, monkeypatch):
    w, g, d = data
    native = {}
    for kind in ("native", "foreign"):
        if kind == "foreign":
            monkeypatch.setattr(vectors, "array_module", lambda a: _NotNumPy)
        v, out, aligned = np.empty_like(w), np.empty_like(w), d.copy()
        numbers = [
            vectors.dot(w, g), *vectors.norms(g), vectors.pseudo_gradient(w, g, 1.0, v),
            *vectors.pseudo_gradient_norms(w, g, 1.0), vectors.align(aligned, v),
            vectors.project_orthant(w, aligned, 3.0, v, out),
        ]  # fmt: skip
        s, towards, res = w.copy(), d.copy(), g.copy()
        for metric in (None, 1.0 + w * w):
            numbers.append(vectors.cg_residual(res, 0.3, d, metric))
            numbers += vectors.cg_direction(s, 0.7, towards, res, -0.2, metric)
        shifted = np.empty_like(w)
        vectors.axpy(w, 0.7, d, shifted)
        if not native:
            native = {"numbers": numbers, "arrays": [v, aligned, out, shifted, s, towards, res]}
        else:
            np.testing.assert_allclose(numbers, native["numbers"], rtol=1e-12, atol=1e-12)
            for ours, theirs in zip(
                [v, aligned, out, shifted, s, towards, res], native["arrays"], strict=True
            ):
                np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-14)


class _NotNumPy:
    """NumPy's functions under another name, as an array library other than NumPy would offer them."""

    def __getattr__(self, name):
        return getattr(np, name)


_NotNumPy = _NotNumPy()


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=300_001), rng.normal(size=300_001)
    seen = set()
    for n in (1, 2, 3):
        with vectors.use_threads(n):
            seen.add((vectors.dot(a, b), *vectors.norms(a), vectors.pseudo_gradient_norms(a, b, 0.3)))
            s, d, res, m = a.copy(), b.copy(), a - b, 1.0 + a * a
            sums = vectors.cg_residual(res, 0.1, b, m), *vectors.cg_direction(s, 0.3, d, res, 0.4, m)
            seen.add((sums, res.tobytes(), s.tobytes(), d.tobytes()))
    assert len(seen) == 2, "one set of bytes of each kind"


@given(st.integers(0, 2**31), st.floats(0.01, 3.0))
@settings(max_examples=30, deadline=None)
def test_pseudo_gradient_is_the_steepest_one_sided_slope(seed, l1):
    # Along -v the linear model of f plus l1|.|_1 falls with slope -|v|^2: one-sided differences.
    rng = np.random.default_rng(seed)
    w = rng.normal(size=6) * (rng.random(6) < 0.5)
    g = 2 * rng.normal(size=6)
    v = np.empty(6)
    vectors.pseudo_gradient(w, g, l1, v)
    h = 1e-7 * (1 + np.abs(v).max()) ** -1
    change = g @ (-h * v) + l1 * (np.abs(w - h * v).sum() - np.abs(w).sum())
    kink = np.abs(w[w != 0]).min(initial=1.0) > h * np.abs(v).max()
    if kink:
        assert change / h == pytest.approx(-(v @ v), rel=1e-5, abs=1e-6)
