"""Former name of `crfit.racing.resume`, until bench has moved."""

from crfit.racing.resume import *  # noqa: F403
