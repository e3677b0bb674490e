"""Former name of `crfit.racing.result`, until bench has moved."""

from crfit.racing.result import *  # noqa: F403
