"""Options that trainers refuse: each alone, and beside others."""

import pytest

from crfit import trainers as t
from crfit.errors import OptionError

ALONE = [
    (t.SGD, {"batch": 0, "eta0": 0.0, "decay": 1.5, "schedule": "linear", "epochs": 0, "averaging": -1}),
    (t.SGD, {"calibration_rate": 1.0, "calibration_samples": 0, "calibration_max_trials": 0}),
    (t.SMD, {"meta_rate": -0.1, "memory": 1.1, "eta0": 0.0}),
    (t.SMD, {"memory": -0.1}),
    (t.NGD, {"update": "U7", "potential": "cosh", "parameter": 0.0, "batch": 0}),
    (t.NGD, {"batch": "some"}),
    (t.AdaGrad, {"epsilon": 0.0}),
    (t.PSA, {"period": 0}),
    (t.PSA, {"period": 2**20}),
    (t.Aitken, {"period": 2**20, "kappa": 0.0, "gamma": 4, "acceleration": "anderson"}),
    (t.PA, {"type": "PA-3", "c": 0.0}),
    (t.AROW, {"variance": 0.0, "gamma": -1.0}),
    (t.Perceptron, {"epsilon": -0.1}),
    (t.NewtonCG, {"xi": 0.0, "mix": 0.0, "max_cg": 0, "cache": "some", "forcing": "linear"}),
    (t.NewtonCG, {"xi": 1.0, "mix": 1.5, "cache": -1, "globalisation": "none", "storage": "all"}),
    (t.NewtonCG, {"curvature": "fd"}),
    (t.EG, {"shrink": 1.0}),
    (t.ClusteredLBFGS, {"fine_iterations": 0, "cluster_factor": 0, "aggregate": "maybe"}),
    (t.GIS, {"bins": 0}),
]
#: Trainer, options, and the message: most have no effect with the others.
TOGETHER = [
    (t.NGD, {"update": "U3"}, "update.*U1"),
    (t.NGD, {"update": "U5"}, "update.*U2"),
    (t.NGD, {"update": "U4"}, "update.*batch='all'"),
    (t.NGD, {"update": "U6", "batch": 100}, "update.*batch='all'"),
    (t.NGD, {"potential": "quadratic", "parameter": 2.0}, "parameter.*leave it out"),
    (t.NGD, {"batch": "all", "averaging": 3}, "averaging.*leave it out"),
    (t.NGD, {"batch": "all", "table": True}, "table.*leave it out"),
    (t.PSA, {"alpha": 0.9, "beta": 0.9}, "beta"),
    (t.BFGS, {"wolfe_decrease": 0.95}, r"wolfe_decrease=0.95: must be smaller than wolfe_slope"),
    (t.ClusteredLBFGS, {"wolfe_decrease": 0.95}, "smaller than wolfe_slope"),
    (t.ClusteredLBFGS, {"span": 0.5, "clustering": "kmeans"}, "has no effect with clustering='kmeans'"),
    (t.GIS, {"map": "T", "form": "ratio"}, "map='T' has only the exact form"),
    (t.GIS, {"map": "T", "bins": 0}, "at least 1"),
    (t.GIS, {"bins": 4}, "bins=4: has no effect with map='S': leave one of the two out"),
    (t.Aitken, {"map": "gis", "scope": "window"}, "window"),
    (t.Aitken, {"map": "T", "scope": "window"}, "window"),
    (t.Aitken, {"map": "gis", "eta0": 0.2}, "eta0=0.2: has no effect with map='gis'"),
    (t.Aitken, {"map": "T", "kappa": 0.5}, "kappa=0.5: has no effect with map='T'"),
    (t.Aitken, {"map": "T", "batch": 8}, "batch=8: has no effect"),
    (t.Aitken, {"map": "T", "report": 2}, "report=2: has no effect"),
    (t.Aitken, {"clip": 0.5}, "clip=0.5: has no effect with map='sgd'"),
    (t.Aitken, {"accept": "step"}, "accept='step': has no effect with map='sgd'"),
    (t.Aitken, {"bins": 3}, "bins=3: has no effect with map='sgd'"),
    (t.Aitken, {"map": "gis", "bins": 3}, "bins=3: has no effect with map='gis'"),
    (t.Aitken, {"map": "T", "form": "ratio"}, "form='ratio': has no effect with map='T'"),
    (t.Aitken, {"map": "T", "acceleration": "triple_jump", "gamma": 1}, "gamma=1: has no effect with accel"),
    (t.Aitken, {"map": "T", "acceleration": "anderson", "scope": "global"}, "scope='global': has no effect"),
    (t.Aitken, {"map": "T", "acceleration": "none", "accept": "step"}, "accept='step': has no effect"),
    (t.Aitken, {"map": "T", "memory": 3}, "memory=3: has no effect with acceleration='aitken'"),
    (t.Aitken, {"scope": "global", "groups": "frequency"}, "groups='frequency': has no effect with scope="),
]


@pytest.mark.parametrize(
    ("trainer", "name", "value"), [(t, *item) for t, each in ALONE for item in each.items()]
)
def test_an_option_alone(trainer, name, value):
    with pytest.raises(OptionError, match=f"^{name}=") as caught:
        trainer(**{name: value})
    assert caught.value.option == name


@pytest.mark.parametrize(("trainer", "options", "message"), TOGETHER)
def test_options_together(trainer, options, message):
    with pytest.raises(OptionError, match=message):
        trainer(**options)
