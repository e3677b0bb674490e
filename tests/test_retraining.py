"""Training from an old model: the same optimum, fewer passes, the same bytes, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from crfit import trainers
from crfit.data import Dataset
from crfit.demo import recipe_data
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.fit import FitOptions, fit_dataset
from crfit.training.callbacks import Checkpoint, load_checkpoint
from crfit.training.stopping import Stop

X, Y = recipe_data(160, seed=3)
TIGHT = Stop(grad_inf=1e-7, max_iter=3000)


def without(label, sequences=range(120)):
    """Old data: sequences without this kind of label."""
    kept = [i for i in sequences if not any(y.endswith(label) for y in Y[i])]
    return Dataset.from_sequences([X[i] for i in kept], [Y[i] for i in kept])


def everything():
    return Dataset.from_sequences(X, Y)


def options(trainer="auto", **given):
    return FitOptions(trainer=trainers.resolve(trainer), stop=TIGHT, n_threads=2, **given)


@pytest.fixture(scope="module")
def old():
    return fit_dataset(without("COMMENT"), options(boundary=True)).model


@pytest.mark.parametrize("trainer", ["newton_cg", "lbfgs", "bfgs"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"weights": "all", "transitions": "observed"},
        {"boundary": True, "order": 2, "transitions": "observed", "min_count": 2},
    ],
)
def test_the_optimum_is_that_of_training_from_nothing(old, trainer, given):
    if trainer == "bfgs":
        given = given | {"min_count": 12}  # few weights
    found = fit_dataset(everything(), options(trainer, **given), init=old)
    nothing = fit_dataset(everything(), options(trainer, **given))
    assert found.result.weights.shape == nothing.result.weights.shape
    np.testing.assert_allclose(found.result.weights, nothing.result.weights, atol=1e-5)
    assert found.result.objective == pytest.approx(nothing.result.objective, rel=1e-9)
    assert found.model.options == nothing.model.options
    carried = found.carried
    assert carried.n_carried > 0
    assert carried.n_carried + carried.n_left == old.layout.n_weights
    assert carried.n_carried + carried.n_new == found.result.weights.size
    assert found.model.summary["carried_over"] == carried._asdict()
    assert nothing.carried is None


def test_with_l1_the_optimum_is_the_same_too(old):
    given = {"l1": 0.5, "l2": 0.1}
    results = [
        fit_dataset(everything(), options("newton_cg", **given), init=one).result for one in (old, None)
    ]
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-6)


def test_merged_attributes_start_at_the_old_weights(old):
    full = fit_dataset(everything(), options("lbfgs", merge=False)).model
    started = []
    for merge in (True, False):
        stop = Stop(max_iter=1)
        again = fit_dataset(everything(), replace(options("lbfgs", merge=merge), stop=stop), init=full)
        started.append(again.result.history[0].objective)
    assert started[0] == pytest.approx(started[1], rel=1e-6), "equal attributes have equal weights"
    nothing = fit_dataset(everything(), options("lbfgs", merge=True)).result
    found = fit_dataset(everything(), options("lbfgs", merge=True), init=old).result
    np.testing.assert_allclose(found.weights, nothing.weights, atol=1e-5)


@pytest.mark.parametrize("trainer", ["auto", "lbfgs"])
def test_from_its_own_optimum_training_ends_at_once(trainer):
    own = trainers.resolve(trainer)
    first = fit_dataset(everything(), FitOptions(trainer=own))
    again = fit_dataset(everything(), FitOptions(trainer=own), init=first.model)
    assert again.result.passes <= 0.5 * first.result.passes
    assert again.result.objective <= first.result.objective * (1 + 1e-6)


@pytest.mark.parametrize("trainer", ["newton_cg", "lbfgs", "sgd"])
def test_the_bytes_do_not_depend_on_threads_or_runs(old, trainer):
    stop = Stop(max_iter=15)
    one, two, again = (
        fit_dataset(everything(), FitOptions(trainers.resolve(trainer), stop=stop, n_threads=n), init=old)
        for n in (1, 2, 2)
    )
    assert one.result.weights.tobytes() == two.result.weights.tobytes() == again.result.weights.tobytes()


@pytest.mark.parametrize("trainer", ["newton_cg", "lbfgs"])
@pytest.mark.parametrize("pulled", [False, True])
def test_a_run_from_an_old_model_resumes_bit_for_bit(old, trainer, pulled, tmp_path):
    models = {"toward": old} if pulled else {}
    start = models or {"init": old}
    whole = fit_dataset(everything(), options(trainer), **start).result
    short = replace(options(trainer), stop=Stop(max_iter=3))
    fit_dataset(everything(), short, **start, callbacks=[Checkpoint(tmp_path / "run")])
    state = load_checkpoint(tmp_path / "run")
    resumed = fit_dataset(
        everything(), replace(options(), trainer=trainers.resolve("auto", state=state)), state=state, **models
    )
    assert resumed.result.weights.tobytes() == whole.weights.tobytes()


def test_pulled_toward_an_old_model_nothing_is_forgotten(old):
    new = Dataset.from_sequences(X[120:], Y[120:])
    found = fit_dataset(new, options(l2=2.0), toward=old)
    assert set(found.model.labels) >= set(old.labels) | set(new.label_alphabet)
    names = old.attribute_alphabet.strings()
    assert set(found.model.attribute_alphabet) >= set(names)
    moved = fit_dataset(new, options(l2=1e6), toward=old).model
    told = moved.tag_many(X[:100])
    assert told == old.tag_many(X[:100]), "a strong pull changes nothing"
    assert found.model.options["toward"] is True
    assert found.carried.n_left == 0


def test_init_and_toward_may_be_two_models(old):
    new = Dataset.from_sequences(X[120:], Y[120:])
    other = fit_dataset(new, options()).model
    results = [fit_dataset(new, options(), toward=old, init=init).result for init in (other, None)]
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-5)


def items(n=120, classes=3):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, n)
    names = [[[f"w{rng.integers(0, 5) + 4 * y}", f"v{rng.integers(0, 9)}"]] for y in labels]
    return Dataset.from_sequences(names, [[f"c{y}"] for y in labels])


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("pulled", [False, True])
def test_classifiers_start_from_old_ones(classes, n_classes, pulled):
    given = options(task="classify", classes=classes)
    old = fit_dataset(items(60, 2), replace(given, l2=0.5)).model
    data = items(120, n_classes)
    found = fit_dataset(data, given, **{"toward" if pulled else "init": old})
    assert found.carried.n_carried > 0
    assert found.model.evaluate(data).accuracy > 60
    if not pulled:
        nothing = fit_dataset(data, given)
        np.testing.assert_allclose(found.result.weights, nothing.result.weights, atol=1e-5)


def test_what_contradicts_itself_is_refused(old, tmp_path):
    data, given = everything(), options()
    run = fit_dataset(data, replace(given, stop=Stop(max_iter=2)), callbacks=[Checkpoint(tmp_path / "run")])
    state = load_checkpoint(tmp_path / "run")
    classifier = fit_dataset(items(), options(task="classify")).model
    wrong = [
        ({"init": classifier}, {}, "classifies items"),
        ({"toward": "old.crfit"}, {}, "crfit.load"),
        ({"init": old, "state": state}, {}, "leave out one of init and resume"),
        ({"init": old, "start": run.result.weights}, {}, "leave them out"),
        ({"toward": old, "state": state}, {}, "not pulled toward an old model"),
        ({"toward": old}, {"merge": True}, "cannot be merged"),
        ({"toward": old}, {"l2": 0.0}, "l2 > 0"),
    ]
    for models, changed, message in wrong:
        with pytest.raises(OptionError, match=message):
            fit_dataset(data, replace(given, **changed), **models)
    fit_dataset(
        data, replace(given, stop=Stop(max_iter=2)), toward=old, callbacks=[Checkpoint(tmp_path / "run")]
    )
    with pytest.raises(OptionError, match="same old model"):
        fit_dataset(data, given, state=load_checkpoint(tmp_path / "run"))
    with pytest.raises(DataError, match="empty"):
        fit_dataset(Dataset.from_sequences([], []), given, init=old)


def test_a_model_of_other_attributes_is_warned_about(old):
    other = Dataset.from_sequences([[["q=1"], ["q=2"]]] * 3, [["A", "B"]] * 3)
    with pytest.warns(CrfitWarning, match="no attribute of the old model occurs"):
        fit_dataset(other, options(), init=old)
