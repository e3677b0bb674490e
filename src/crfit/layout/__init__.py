"""Which features have a weight, and at which index of the weight vector."""

from crfit.layout.features import (
    Feature,
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
