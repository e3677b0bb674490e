"""All trainers of the four papers and of crfit on ten problems.

Gaps against seconds and passes, scores against seconds; and the open point of the Japanese paper on Newton-CG
(2010), which found SGD faster on its largest task: what about Brown?
"""

from bench.speed.overview.contests import measure, tasks
from bench.speed.overview.pictures import pictures, races
from bench.speed.overview.tables import CLAIMS, checks, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "races", "tables", "tasks"]

TITLE = "all trainers on ten problems: seconds and passes to gaps and scores"
