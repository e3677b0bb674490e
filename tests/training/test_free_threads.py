"""Training and tagging in several threads at once, without a lock: with and without the GIL."""

import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import crfit
from crfit.demo import recipe_data

TRAINERS = ["newton_cg", "lbfgs", "sgd", "arow", "eg", "perceptron"]


def at_once(functions):
    """Results of functions that begin together, each in a thread of its own."""
    together = threading.Barrier(len(functions))

    def begin(function):
        together.wait(20)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [done.result(60) for done in [pool.submit(begin, function) for function in functions]]


def trained(trainer, seed):
    X, y = recipe_data(60, seed=seed)
    crf = crfit.CRF(trainer=trainer, n_threads=2, stop=crfit.Stop(max_iter=4)).fit(X, y)
    return crf.model_.weights.tobytes(), crf.predict(X)


def test_importing_crfit_does_not_turn_the_gil_on():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has a GIL")
    assert not sys._is_gil_enabled()


def test_trainings_at_once_give_the_models_of_each_alone():
    alone = [trained(trainer, seed) for seed, trainer in enumerate(TRAINERS)]
    for _ in range(2):
        assert at_once([lambda i=i, t=t: trained(t, i) for i, t in enumerate(TRAINERS)]) == alone


def test_data_that_another_thread_changes_is_read_whole():
    """Lists grow, shrink and get other items while they are read; each answer belongs to one state."""
    X, y = recipe_data(80, seed=3)
    model = crfit.CRF(l2=0.5, stop=crfit.Stop(max_iter=5)).fit(X, y).model_
    sequence = [list(item) if isinstance(item, list) else dict(item) for item in X[0]]
    spare, over = [dict.fromkeys(["a", "b"], "c"), ["x", "y"]], threading.Event()

    def change():
        while not over.is_set():
            sequence.append(spare[0])
            sequence.append(spare[1])
            item = ["new"] * 20
            sequence.append(item)
            item.clear()
            spare[0]["more"] = 1.0
            del spare[0]["more"]
            del sequence[-3:]

    def read():
        for _ in range(300):
            assert len(X[0]) <= len(model.tag(sequence)) <= len(X[0]) + 3
            assert len(model.tag_many([sequence, X[1]], n_threads=2)[1]) == len(X[1])
            crfit.Dataset.from_sequences([sequence])

    changer = threading.Thread(target=change)
    changer.start()
    try:
        at_once([read] * 3)
    finally:
        over.set()
        changer.join()


def test_one_alphabet_grows_in_many_threads():
    from crfit.data.alphabet import Alphabet

    alphabet = Alphabet()
    names = [f"n{i}" for i in range(500)]
    ids = at_once([lambda: [alphabet.native.add(name.encode()) for name in names]] * 4)
    assert all(found == ids[0] for found in ids)
    assert [alphabet.native.string(i).decode() for i in ids[0]] == names
