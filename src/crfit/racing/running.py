"""Former name of `crfit.racing.runner`, until bench has moved."""

from crfit.racing.runner import *  # noqa: F403
