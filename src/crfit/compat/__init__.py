"""Modules with the interfaces of python-crfsuite and sklearn-crfsuite, on crfit's trainers and models.

``from crfit.compat import pycrfsuite`` replaces ``import pycrfsuite``, and likewise ``sklearn_crfsuite``.
``python -m crfit.compat install`` makes the original names importable too, for packages that you cannot
change.
"""
