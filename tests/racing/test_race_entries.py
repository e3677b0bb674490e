"""From the words of a user to the entries of a race."""

# ruff: noqa: F811 (fixtures)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.errors import OptionError
from crfit.racing import Entry
from crfit.racing.entries import read_entries
from crfit.racing.problems import PROBLEM_OPTIONS, ProblemOptions, read_problem_options, spelled
from crfit.trainers import LBFGS
from race_helpers import odd_trainers  # noqa: F401

PLAIN = ProblemOptions()


def entries(trainers, *settings, **more):
    return read_entries(trainers, PLAIN, settings=settings, **more)


def labels(trainers, *settings):
    return [entry.label for entry in entries(trainers, *settings)]


def test_text_of_the_command_line():
    found = entries("lbfgs:memory=3, lbfgs ,wide=lbfgs:memory=50:l2=0.1:weights=all,auto")
    assert [entry.label for entry in found] == ["lbfgs memory=3", "lbfgs", "wide", "auto"]
    assert [getattr(entry.trainer, "memory", None) for entry in found] == [3, 10, 50, None]
    assert found[2].problem == ProblemOptions(l2=0.1, weights="all")
    assert found[2].options == {"memory": 50, "l2": 0.1, "weights": "all"}
    assert found[0].problem == PLAIN


def test_what_python_may_give():
    trainers = ["lbfgs:l2=2", LBFGS(memory=7), LBFGS()]
    assert labels(trainers) == ["lbfgs l2=2", "lbfgs memory=7", "lbfgs"]
    named = entries({"a": "lbfgs:memory=2", "b, with a comma": LBFGS()})
    assert [entry.label for entry in named] == ["a", "b, with a comma"]
    assert entries([Entry("x", LBFGS(), PLAIN, {}), "lbfgs"])[0].label == "x"


def test_automatic_labels_are_unique():
    assert labels("lbfgs,lbfgs,lbfgs:memory=10,lbfgs") == [
        "lbfgs", "lbfgs (2)", "lbfgs memory=10", "lbfgs (3)",
    ]  # fmt: skip


def test_penalties_by_the_names_of_crfsuite_are_refused():
    with pytest.raises(OptionError, match=r"c2=0.2: is CRFsuite's penalty: use l2=0.4"):
        entries("lbfgs:c2=0.2")


def test_options_for_several_entries():
    found = entries(
        "lbfgs,wide=lbfgs:memory=50,auto", "lbfgs.memory=5", "wide.wolfe-decrease=0.01", "lbfgs.max_trials=5"
    )
    assert [entry.options for entry in found] == [
        {"memory": 5, "max_trials": 5}, {"memory": 50, "wolfe_decrease": 0.01, "max_trials": 5}, {},
    ]  # fmt: skip
    assert labels("lbfgs", "lbfgs.min-count=2") == ["lbfgs min_count=2"]
    dotted = entries("v1.5=lbfgs", "v1.5.memory=4")
    assert dotted[0].options == {"memory": 4}


def test_seeds(odd_trainers):
    found = entries("silent,silent:seed=5,silent:seed=0,lbfgs", seed=9)
    assert [entry.trainer.seed for entry in found[:3]] == [9, 5, 0]
    assert [entry.label for entry in found] == ["silent", "silent seed=5", "silent seed=0", "lbfgs"]


@pytest.mark.parametrize(
    ("trainers", "settings", "message"),
    [
        ("lbfsg:memory=3", (), "trainers='lbfsg:memory=3': unknown, did you mean lbfgs?"),
        ("lbfgs,lbfgs:memry=3", (), "'lbfgs:memry=3': memry=3: no such option; did you mean memory? lbfgs"),
        ("auto:memory=3", (), "auto has no options; the problem has l2, l1"),
        ("lbfgs:memory=0", (), "memory=0: must be at least 1"),
        ("lbfgs:memory=many", (), "memory=many: must be int"),
        ("lbfgs:l2=-1", (), "l2=-1.0: must be at least 0"),
        ("lbfgs:l2=inf", (), "l2=inf: must be below inf"),
        ("lbfgs:weights=some", (), "weights=some: must be 'all' | 'observed'"),
        ("lbfgs:memory", (), "'memory' is not of the form OPTION=VALUE"),
        ("lbfgs:memory=3:memory=5", (), "sets memory twice: leave one out"),
        ("lbfgs:min-count=3:min_count=3", (), "sets min_count twice"),
        ("a=:memory=3", (), "name a trainer"),
        ("=lbfgs", (), "a label is a text"),
        ("", (), "name at least one of lbfgs"),
        ([], (), "name at least one of lbfgs"),
        ("a=lbfgs,a=auto", (), "two entries have this label"),
        ({"a": "b=lbfgs"}, (), "has a label of its own, besides 'a'"),
        ({"a\n": "lbfgs"}, (), "a label is a text"),
        (LBFGS(), (), "give a list"),
        ([LBFGS], (), "must be a name or an instance"),
        ("lbfgs", ("memory=3",), "settings='memory=3': is not of the form TRAINER.OPTION=VALUE"),
        ("lbfgs", ("lbfgs.memory",), "is not of the form"),
        ("a=lbfgs", ("b.memory=3",), "no entry is called b: there are a, lbfgs"),
        ("lbfgs:memory=2", ("lbfgs.memory=3",), "every lbfgs sets memory itself"),
        ("lbfgs", ("lbfgs.memory=x",), "memory=x: must be int"),
    ],
)
def test_refusals_name_the_entry_and_the_remedy(trainers, settings, message):
    with pytest.raises(OptionError) as caught:
        entries(trainers, *settings)
    assert message in str(caught.value)


def test_problems_have_names():
    assert PLAIN.name == "l2=1"
    assert ProblemOptions(l2=0.1, l1=2.0, boundary=True).name == "l2=0.1 l1=2 boundary=true"
    assert ProblemOptions(l2=0.1 + 0.2).name == "l2=0.30000000000000004"
    assert ProblemOptions(l2=np.float32(0.5), order=np.int64(1)).name == "l2=0.5"
    one, other = entries("lbfgs:l2=0,lbfgs:l2=-0")
    assert one.problem.name == other.problem.name == "l2=0"
    assert [one.label, other.label] == ["lbfgs l2=0", "lbfgs l2=0 (2)"]
    with pytest.raises(OptionError, match="no option of a race; there are l2, l1"):
        read_problem_options({"l3": 1})


values = {
    "l2": st.floats(0, 1e6), "l1": st.floats(0, 1e6), "weights": st.sampled_from(["all", "observed"]),
    "transitions": st.sampled_from(["all", "observed", "none"]), "boundary": st.booleans(),
    "order": st.integers(1, 5), "min_count": st.integers(0, 100),
}  # fmt: skip


@given(st.fixed_dictionaries({}, optional={"memory": st.integers(1, 99), **values}))
def test_options_read_back_from_their_spelling(options):
    text = ":".join(["lbfgs", *(f"{name}={spelled(value)}" for name, value in options.items())])
    (entry,) = entries([text])
    assert entry.options == options
    assert {name: getattr(entry.problem, name) for name in PROBLEM_OPTIONS if name in options} == {
        name: value for name, value in options.items() if name != "memory"
    }
    (again,) = entries([text.replace("lbfgs", "named=lbfgs", 1)])
    assert (again.label, again.problem.name) == ("named", entry.problem.name)
