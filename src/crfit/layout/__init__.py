"""Which features have a weight, and where it lies in the weight vector."""

from crfit.layout.features import Feature
from crfit.layout.weight_index import (
    Layout,
    TransitionsOption,
    WeightsOption,
    centre_free,
    classifier_layout,
    make_layout,
)

__all__ = [
    "Feature",
    "Layout",
    "TransitionsOption",
    "WeightsOption",
    "centre_free",
    "classifier_layout",
    "make_layout",
]
