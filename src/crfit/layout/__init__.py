"""Which features have a weight, and where it lies in the weight vector."""

from crfit.layout.classifier import centre_free, classifier_layout
from crfit.layout.feature import Feature
from crfit.layout.layout import Layout
from crfit.layout.making import make_layout
from crfit.layout.options import TransitionsOption, WeightsOption

__all__ = [
    "Feature",
    "Layout",
    "TransitionsOption",
    "WeightsOption",
    "centre_free",
    "classifier_layout",
    "make_layout",
]
