"""The interface of python-crfsuite: `Trainer`, `Tagger` and `ItemSequence`.

Model files are CRFsuite's own, so either library reads what the other has written. docs/drop-in.md lists the
differences.
"""

from crfit.compat.pycrfsuite.items import ItemSequence
from crfit.compat.pycrfsuite.tagger import Tagger
from crfit.compat.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]

#: Version of CRFsuite whose model files and parameters these classes use.
CRFSUITE_VERSION = "0.12.2"
