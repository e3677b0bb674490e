"""What a tool is, when its runs end, and what the tools share.

A tool is a program or library that crfit is compared with. It is a module in `bench.tools`, found by being
there, that can be imported whether the tool is installed or not. It has

    TITLE                              the name that people know
    SOLVES                             subset of {"chain", "classifier", "binary"}
    VARIANTS                           settings by name, "default" and others, all correct
    absent()                           None, or why it cannot run here and how to get it
    version()
    refuses(problem, variant)          None, or why it cannot minimise the function of a problem
    threads(most, variant)             how many it uses of those that it may have
    run(loaded, limits, variant)       a `Curve`

The seconds of a curve are those of training: reading and converting the input before it, and tagging the test
part after it, are not in them. What a tool logs is printed as it comes, so that the log of a task has it.
Objectives are F as in `bench.problems`, whatever the tool's own scale is.
"""

from bench.tools.base.data import two_label_weights, unfit
from bench.tools.base.recording import Limits, Recording

__all__ = ["Limits", "Recording", "two_label_weights", "unfit"]
