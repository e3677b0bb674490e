"""One model in many threads: the same answers as alone, also for what is prepared at the first call."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import crfit
from crfit.demo import recipe_data

N_THREADS, ROUNDS = 8, 12


@pytest.fixture(scope="module")
def trained():
    X, y = recipe_data(150, seed=1)
    return crfit.CRF(l2=0.5).fit(X, y).model_, X[:24]


def questions(model, x, i):
    """What services ask, in an order of its own for each thread."""
    labels = model.labels
    pair = labels[i % len(labels)], labels[(3 * i + 1) % len(labels)]
    fixed = {0: labels[i % len(labels)]}
    return {
        "tag": model.tag(x),
        "marginals": model.marginals(x),
        "nbest": model.nbest(x, 3),
        "spans": model.spans(x),
        "probability": model.probability(x, model.tag(x)),
        "threshold": model.tag(x, threshold=0.9),
        "fixed": model.constrain().tag(x, fixed=fixed),
        "forbid": model.tag(x, forbid=[pair]),  # kept for later calls, a few of them
        "constrain": model.constrain(forbid=[pair]).marginals(x),
        "confidence": model.confidence(x),
        "explain": repr(model.explain(x, 0)),
        "many": model.tag_many([x] * 40, n_threads=2)[-1],
    }


def test_many_threads_get_the_answers_of_one(trained, tmp_path):
    model, X = trained
    alone = [questions(model, x, i) for i, x in enumerate(X)]
    model.save(tmp_path / "m.crfit")
    for _ in range(3):
        fresh = crfit.load(tmp_path / "m.crfit")  # nothing is prepared yet
        together = threading.Barrier(N_THREADS)

        def ask(seed, fresh=fresh, together=together):
            together.wait(20)
            for k in range(ROUNDS):
                i = (seed * 5 + k * 7) % len(X)
                assert questions(fresh, X[i], i) == alone[i]

        with ThreadPoolExecutor(N_THREADS) as pool:
            for done in [pool.submit(ask, seed) for seed in range(N_THREADS)]:
                done.result(60)


def test_classifiers_too(tmp_path):
    items = [[f"w={i % 7}", f"v={i % 3}"] for i in range(60)]
    model = crfit.LogLinear().fit(items, [str(i % 3) for i in range(60)]).model_
    model.save(tmp_path / "m.crfit")
    expected = [(model.classify([item]), model.probabilities([item])) for item in items]
    fresh = crfit.load(tmp_path / "m.crfit")
    with ThreadPoolExecutor(N_THREADS) as pool:
        for _ in range(5):
            found = list(pool.map(lambda item: (fresh.classify([item]), fresh.probabilities([item])), items))
            assert found == expected
