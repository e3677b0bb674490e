"""Wapiti itself, from the package libwapiti: its program, and its decoder with scores in full precision."""

import ctypes
import logging
import subprocess
import sys

import numpy as np
import pytest

_PROGRAM = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
arguments = [b"wapiti", *map(str.encode, sys.argv[2:])]
sys.exit(library.main(len(arguments), (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)))
"""


def libwapiti():
    """The package; skips the test without it."""
    theirs = pytest.importorskip("wapiti", reason="needs libwapiti")
    logging.getLogger().setLevel(logging.ERROR)
    return theirs


def program(*arguments):
    """Output and report of the program."""
    library = libwapiti().api._wapiti._name
    command = [sys.executable, "-c", _PROGRAM, library, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, timeout=60, check=True)
    return ran.stdout.decode(), ran.stderr.decode()


def decoded(path, rows, posterior):
    """Labels of one sequence, the score, and the score of each position, by the library's decoder."""
    theirs = libwapiti()
    model = theirs.Model(model=str(path), lblpost=posterior)
    library, n = theirs.api._wapiti, len(rows)

    class Raw(ctypes.Structure):
        _fields_ = [("len", ctypes.c_uint32), ("lines", ctypes.c_char_p * n)]

    library.rdr_raw2seq.restype = ctypes.c_void_p
    library.rdr_raw2seq.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool]
    library.tag_viterbi.argtypes = [ctypes.c_void_p] * 5
    library.tag_viterbi.restype = None
    raw = Raw(n, (ctypes.c_char_p * n)(*(" ".join(row).encode() for row in rows)))
    sequence = library.rdr_raw2seq(model._model.contents.reader, ctypes.byref(raw), False)
    labels, score, scores = np.empty(n, np.uint32), np.empty(1), np.empty(n)
    library.tag_viterbi(model._model, sequence, labels.ctypes.data, score.ctypes.data, scores.ctypes.data)
    return labels.tolist(), float(score[0]), scores.tolist()
