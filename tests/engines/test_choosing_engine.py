"""How an engine is chosen by name, and what happens when an order exceeds it."""

import warnings

import numpy as np
import pytest

from crfit import engines
from crfit.data import Dataset
from crfit.engines import Engine, make_inference, make_objective
from crfit.engines.reference.decoding import ReferenceDecoder
from crfit.engines.reference.objective import ReferenceObjective
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.layout import make_layout
from crfit.training.stopping import Stop
from fit_helpers import fit_dataset
from oracle import inference_of, larger, make_dataset, objective_of, random_dataset

every_first_order = pytest.mark.parametrize("device", ["reference", "cpu"])


@pytest.mark.parametrize("device", engines.ENGINES)
def test_every_engine_takes_higher_orders_itself(device):
    problem = larger(1, 2, 4, order=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert objective_of(problem, device).device == device
        inference_of(problem, device).viterbi()


def test_an_engine_plugs_in_by_its_entry_alone(monkeypatch):
    class Abacus(ReferenceObjective):
        device = "abacus"

    monkeypatch.setitem(engines.ENGINES, "abacus", Engine(Abacus, ReferenceDecoder, max_order=2))
    problem = larger(1, 2, 4, order=2)
    objective = objective_of(problem, "abacus")
    assert type(objective) is Abacus
    assert objective.device == "abacus"
    np.testing.assert_array_equal(
        inference_of(problem, "abacus").viterbi()[0], inference_of(problem, "reference").viterbi()[0]
    )
    model, *_ = fit_dataset(problem.dataset, device="abacus", dev=problem.dataset, stop=Stop(max_iter=1))
    assert model.options["device"] == "abacus"
    with pytest.warns(CrfitWarning, match="order=3: device='abacus' supports orders up to 2"):
        assert make_objective(problem.dataset, order=3, device="abacus").device == "reference"


def test_a_decoder_serves_many_datasets():
    problem = larger(5, 3, 6)
    for device, engine in engines.ENGINES.items():
        decoder = engine.decoder(problem.layout, problem.w)
        for part in (problem.dataset, problem.dataset.subset([2, 0])):
            expected = make_inference(part, problem.layout, problem.w, device=device)
            np.testing.assert_array_equal(decoder(part).viterbi()[0], expected.viterbi()[0])


def test_an_order_whose_tables_do_not_fit_in_memory_is_refused_with_one_that_does():
    dataset = random_dataset(0, [78, 2], n_labels=22)
    layout = make_layout(dataset, order=4, transitions="none")
    with pytest.raises(OptionError, match=r"order=4: a sequence of 78 .* 18 GiB .* set order=3 or less"):
        make_objective(dataset, layout, device="reference")
    with pytest.raises(OptionError, match=r"order=4.*set order=3 or less"):
        make_inference(dataset, layout, np.zeros(layout.n_weights), device="reference")
    make_objective(dataset, order=3, transitions="none", device="reference")
    make_objective(dataset.subset([1]), layout, device="reference")
    long = random_dataset(0, [20_000], n_labels=100)
    with pytest.raises(OptionError, match="split long sequences"):
        make_objective(long, device="reference")


def test_the_native_engine_refuses_an_order_whose_tables_do_not_fit():
    dataset = random_dataset(0, [1000], n_labels=22)
    layout = make_layout(dataset, order=4, transitions="none")
    with pytest.raises(OptionError, match=r"order=4: .* 8 GiB in the native engine.* set order=3 or less"):
        make_objective(dataset, layout)
    with pytest.raises(OptionError, match="set order=3 or less"):
        make_inference(dataset, layout, np.zeros(layout.n_weights))


def test_other_things_than_datasets_are_refused_without_being_printed():
    X, y = [[["secret"]]], [["A"]]
    data = Dataset.from_sequences(X, y)
    for arguments, message in (
        (((X, y),), r"dataset is a tuple, not a Dataset: .*from_sequences\(X, y\)"),
        ((X, y), "dataset is a list"),
        ((data, y), "layout is a list, not a Layout: .*make_layout"),
    ):
        with pytest.raises(DataError, match=message) as refused:
            make_objective(*arguments)
        assert "secret" not in str(refused.value)
    with pytest.raises(DataError, match=r"dataset is a list, not a Dataset: .*alphabets_of=model\)"):
        make_inference(X, make_layout(data), np.zeros(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": "1"}, "l2='1'"), ({"l2": True}, "l2=True"), ({"l1": -1}, "l1=-1"),
        ({"boundary": "no"}, "boundary='no'"), ({"min_count": -1}, "min_count=-1"),
        ({"min_count": 1.5}, "min_count=1.5"), ({"min_count": True}, "min_count=True"),
        ({"n_threads": 0}, "n_threads=0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_bad_options_of_an_objective_are_refused(options, message, device):
    dataset = larger(1, 2, 4).dataset
    with pytest.raises(OptionError, match=message):
        make_objective(dataset, device=device, **options)


def test_a_min_count_that_leaves_nothing_is_told():
    dataset = larger(1, 2, 4).dataset
    with pytest.warns(CrfitWarning, match="min_count=1000000: no attribute .* all 50 are dropped"):
        assert make_objective(dataset, min_count=10**6).dataset.n_attributes == 0


def test_options_build_the_layout():
    dataset = larger(1, 3, 4).dataset
    objective = make_objective(dataset, weights="all", boundary=True, order=2, device="reference")
    assert objective.l2 == 1.0
    assert objective.layout.n_weights == 50 * 3 + 9 + 27 + 6 + 3 * 9


def test_options_that_contradict_the_layout_are_refused():
    problem = larger(1, 2, 4)
    with pytest.raises(OptionError, match="boundary"):
        objective_of(problem, "reference", boundary=True)
    with pytest.raises(OptionError, match="min_count"):
        objective_of(problem, "reference", min_count=2)
    objective_of(problem, "reference", weights="observed", transitions="all")


def test_unknown_device_and_wrong_number_of_weights_are_refused():
    problem = larger(1, 2, 4)
    with pytest.raises(OptionError, match="'cpu', 'reference'"):
        objective_of(problem, "abacus")
    with pytest.raises(OptionError, match=f"{problem.layout.n_weights} weights"):
        make_inference(problem.dataset, problem.layout, np.zeros(3), device="reference")


@every_first_order
def test_labels_and_attributes_unknown_to_the_layout_are_refused(device):
    layout = make_layout(random_dataset(0, [3], n_labels=2, n_attributes=2), weights="all")
    labels = make_dataset([[[], []], [[], []]], [[0, 1], [1, 2]], n_labels=3, n_attributes=2)
    with pytest.raises(DataError, match="sequence 1, position 1: label id 2"):
        make_objective(labels, layout, device=device)
    make_inference(labels, layout, np.zeros(layout.n_weights), device=device).viterbi()
    attributes = make_dataset([[[(2, 1.0)]]], [[0]], n_labels=2, n_attributes=3)
    with pytest.raises(DataError, match="attribute ids"):
        make_objective(attributes, layout, device=device)
    with pytest.raises(DataError, match="attribute ids"):
        make_inference(attributes, layout, np.zeros(layout.n_weights), device=device)


@every_first_order
def test_bad_arguments_of_inference_are_refused(device):
    problem = larger(2, 2, 4)
    inference = inference_of(problem, device)
    labels = problem.dataset.labels.copy()
    with pytest.raises(OptionError, match="labels"):
        inference.path_score(labels[1:])
    labels[0] = 2
    with pytest.raises(OptionError, match="labels=2"):
        inference.path_score(labels)
    with pytest.raises(OptionError, match="n=0"):
        inference.nbest(0)
