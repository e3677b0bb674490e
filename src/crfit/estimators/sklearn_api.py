"""scikit-learn's estimator conventions, with and without scikit-learn.

An estimator stores its constructor arguments unchanged as attributes. ``get_params`` and ``set_params`` read
and change them, which ``clone``, ``Pipeline`` and ``GridSearchCV`` need. If scikit-learn is installed,
estimators derive from its ``BaseEstimator`` and errors from its ``NotFittedError``; otherwise from the small
classes here, which behave the same.

Arguments that are dataclasses, for example a trainer or stopping rules, have nested parameters:
``trainer__memory``, ``stop__max_iter``. They are frozen, so setting one replaces them by a changed copy.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from crfit.errors import CrfitError, OptionError

_Self = TypeVar("_Self", bound="Estimator")


class _PlainBase:
    """Replacement for scikit-learn's ``BaseEstimator``."""

    def __repr__(self) -> str:
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        defaults = inspect.signature(type(self)).parameters
        changed = [f"{k}={v!r}" for k, v in given.items() if repr(v) != repr(defaults[k].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_inner(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": _PlainBase._repr_html_inner(self)}


class _PlainNotFittedError(ValueError, AttributeError):
    """Replacement for scikit-learn's ``NotFittedError``."""


if TYPE_CHECKING:
    _Base = _PlainBase
    _NotFittedError = _PlainNotFittedError
else:
    try:
        from sklearn.base import BaseEstimator as _Base
        from sklearn.exceptions import NotFittedError as _NotFittedError
    except ImportError:
        _Base, _NotFittedError = _PlainBase, _PlainNotFittedError


class NotFittedError(CrfitError, _NotFittedError):
    """An estimator was used before calling ``fit``.

    If scikit-learn is installed, it is also a subclass of its ``NotFittedError``.
    """


class Estimator(_Base):
    """Base class of estimators: reads and changes constructor arguments.

    It does not derive from ``ClassifierMixin``: scikit-learn would then stratify by ``y``, and it rejects
    labels in lists of different lengths.
    """

    #: For parameters that are dataclasses: functions that convert other values, for example names.
    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {}

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names of the constructor's arguments."""
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the fields of arguments that are dataclasses, as ``trainer__memory``.

        Returns
        -------
        dict
        """
        params = {name: getattr(self, name) for name in self._get_param_names()}
        if deep:
            for name in self._nested:
                value = params[name]
                if dataclasses.is_dataclass(value) and not isinstance(value, type):
                    for entry in dataclasses.fields(value):
                        params[f"{name}__{entry.name}"] = getattr(value, entry.name)
        return params

    def set_params(self: _Self, **params: Any) -> _Self:
        """Change constructor arguments. Sets: the attributes of these names.

        Parameters
        ----------
        **params
            Arguments by name. ``trainer__memory=20`` changes one field of an argument; if both are given, the
            argument is set first.

        Returns
        -------
        Estimator
            The estimator itself.
        """
        names = self._get_param_names()
        fields: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, within, field = key.partition("__")
            if name not in names or (within and name not in self._nested):
                remedy = f"{type(self).__name__} has no such parameter; choose from {', '.join(names)}"
                raise OptionError(key, value, remedy)
            if within:
                fields.setdefault(name, {})[field] = value
        for key in names:
            if key in params:
                setattr(self, key, params[key])
        for name, changes in fields.items():
            old = self._nested[name](getattr(self, name))
            known = [entry.name for entry in dataclasses.fields(old)]
            for field, value in changes.items():
                if field not in known:
                    remedy = (
                        f"{getattr(self, name)!r} has {', '.join(known) or 'no options: give one by name'}"
                    )
                    raise OptionError(f"{name}__{field}", value, remedy)
            setattr(self, name, dataclasses.replace(old, **changes))
        return self

    # Notebooks: scikit-learn's diagram, and below it the model if there is one.

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._model_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._model_html()
        return bundle

    def _model_html(self) -> str:
        model = getattr(self, "model_", None)
        return "" if model is None else str(model._repr_html_())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # scikit-learn alone calls this
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.dict = True
        return tags


def seed_from(random_state: Any) -> int:
    """Convert scikit-learn's ``random_state`` to a seed."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if (
        isinstance(random_state, int | np.integer)
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return int(random_state)
    raise OptionError(
        "random_state", random_state, "give a whole number (0 or more), None or a NumPy generator"
    )
