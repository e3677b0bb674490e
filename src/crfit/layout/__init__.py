"""Which features have a weight, and where it lies in the weight vector."""

from crfit.layout.layout import Feature, Layout, TransitionsOption, WeightsOption, make_layout

__all__ = ["Feature", "Layout", "TransitionsOption", "WeightsOption", "make_layout"]
