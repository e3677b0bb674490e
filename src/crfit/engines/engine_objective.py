"""Code shared by the objectives of all engines: penalty, counters, the pinned point and validation.

`EngineObjective` lists what an engine implements; `crfit.engines.objective` is the interface for trainers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import vectors
from crfit.checks import first_outside, rows
from crfit.engines.aggregation import aggregate_objective
from crfit.engines.objective import Counts, LineFunction, Objective
from crfit.engines.profile import Phases
from crfit.engines.weight_groups import GroupKind, weight_groups
from crfit.errors import CapabilityError, DataError, OptionError, PointError
from crfit.threads import resolve_threads
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines.dual import Dual
    from crfit.engines.margin import MarginRule, MarginRun
    from crfit.engines.online import OnlineRun, Rule
    from crfit.engines.scaling import ScalingTerms
    from crfit.layout import Layout
    from crfit.layout.constraints import Constraints

SequenceIds: TypeAlias = NDArray[np.int64]

#: Capabilities of an engine; see `EngineObjective`.
CAPABILITIES = frozenset(
    {
        *("value", "value_and_grad", "subset", "along", "expectations", "l1", "offsets"),
        *("hvp", "hessian_diagonal", "feature_totals", "scaling_terms", "online", "margin", "dual"),
    }
)


def add_l2(w: Vector, l2: float, grad: Vector | None = None) -> float:
    """Return ``(l2/2) |w|^2`` over all weights and add its gradient ``l2 w`` to `grad`, if given."""
    if l2 == 0.0:
        return 0.0
    if grad is not None:
        vectors.axpy(grad, l2, w, grad)
    return 0.5 * l2 * vectors.dot(w, w)


class Penalty:
    """Sums over the penalised weights: the one or two ranges of the vector outside the slice `free`.

    With `scale`, the l2 penalty of weight j is ``l2 scale[j]``; it is 0 in `free`.
    """

    def __init__(self, n_weights: int, free: slice, scale: Vector | None = None) -> None:
        self.n_weights, self.free, self.scale = n_weights, free, scale
        self.n_free = free.stop - free.start
        self._ranges = vectors.penalised_ranges(n_weights, free)

    def inner(self, a: Vector, b: Vector) -> float:
        """``a . b``, scaled."""
        b = b if self.scale is None else self.scale * b
        return sum(vectors.dot(a[part], b[part]) for part in self._ranges)

    def value(self, w: Vector, l2: float) -> float:
        """``(l2/2) |w|^2``, scaled."""
        return 0.5 * l2 * self.inner(w, w) if l2 > 0.0 else 0.0

    def add_gradient(self, w: Vector, l2: float, out: Vector) -> None:
        """Add the gradient of `value` to `out`."""
        w = w if self.scale is None else self.scale * w
        for part in self._ranges:
            vectors.axpy(out[part], l2, w[part], out[part])

    def sum_abs(self, w: Vector) -> float:
        """``|w|_1``."""
        return sum(vectors.sum_abs(w[part]) for part in self._ranges)

    def add_constant(self, l2: float, out: Vector) -> None:
        """Add l2, scaled, to the penalised entries of `out`."""
        for part in self._ranges:
            out[part] += l2 if self.scale is None else l2 * self.scale[part]

    def strengths(self, l2: float) -> Vector:
        """l2 of each weight, 0 if unpenalised; float64[n_weights] in NumPy."""
        each = np.zeros(self.n_weights)
        self.add_constant(l2, each)
        return each

    def take_off(self, v: Vector, l2: float, out: Vector) -> float:
        """Subtract from `out` what ``l2 v`` is too large by; return the same for ``(l2/2) |v|^2``.

        That is all of it for unpenalised weights, and the share ``1 - scale`` for the others.
        """
        if l2 == 0.0:
            return 0.0
        if self.scale is not None:
            less = v - self.scale * v
            vectors.axpy(out, -l2, less, out)
            return 0.5 * l2 * vectors.dot(less, v)
        if not self.n_free:
            return 0.0
        free = v[self.free]
        out[self.free] -= l2 * free
        return 0.5 * l2 * vectors.dot(free, free)


def _strength(name: str, value: Any) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not (number and math.isfinite(value) and value >= 0.0):
        raise OptionError(name, value, "give a finite number, 0 or more")
    return float(value)


#: Number of entries sampled to detect changes of the pinned array.
PIN_SAMPLE = 4096


class EngineObjective(Objective, ABC):
    """Base class of objectives on an engine: penalty, counters, pinned point and validation.

    An engine subclasses it, sets `device` and `capabilities`, and implements `_prepare`, `_loss`,
    `_loss_and_grad` and one hook per further capability. Hooks get validated arguments and compute the data
    term. Hooks whose result is as long as the weights also get l2 and add it to all entries, which saves a
    sweep; the unpenalised entries are corrected here. All vectors are arrays of `xp`. Hooks add the time they
    take to `phases` (`crfit.engines.profile`).

        capability          hook
        subset              _loss_on, and _loss_and_grad with a subset
        hvp                 _hvp; keep_curvature, table_bytes and curvature_bytes if lattices can be cached,
                            _restrict if products with some of the weights can be cheaper
        hessian_diagonal    _hessian_diagonal
        along               _along
        expectations        _expectations
        online              _online, returns a crfit.engines.online.OnlineRun
        margin              _margin, returns a crfit.engines.margin.MarginRun
        dual                _dual, returns a crfit.engines.dual.Dual
        offsets             the constructor's `offsets`, float64[N, Y]: constants added to the scores, and its
                            `constraints`; minus infinity forbids a label
        feature_totals      no hook: uses best paths from the engine's decoder
        scaling_terms       no hook: uses probabilities from the engine's decoder
        l1                  no hook

    Attributes
    ----------
    dataset : Dataset
        The training data.
    layout : Layout
        Which features have a weight.
    device : str
        Name of the engine in `crfit.engines.ENGINES`.
    n_merged : int
        Number of attributes removed by merging equal ones, see `crfit.engines.merged`.
    """

    device: ClassVar[str]
    capabilities: frozenset[str] = frozenset({"value", "value_and_grad", "l1"})
    xp: ModuleType = np
    phases: Phases
    n_merged: int = 0
    _consistent: EngineObjective | None = None

    def __init__(
        self,
        dataset: Dataset,
        layout: Layout,
        *,
        l1: float,
        l2: float,
        n_threads: int | None = None,
        arithmetic: str = "scaled",
        offsets: NDArray[np.float64] | None = None,
        constraints: Constraints | None = None,
        toward: Vector | None = None,
    ) -> None:
        layout.check_dataset(dataset, labelled=True)
        if not dataset.one_position:
            self.capabilities -= {"scaling_terms"}
        partial = dataset.label_sets is not None
        if offsets is not None or constraints is not None or partial:
            if "offsets" not in self.capabilities:
                remedy = "lacks constraints, costs and partial labels: use device='cpu'"
                raise CapabilityError("engine", type(self).__name__, remedy)
            # These compute scores from the weights only.
            self.capabilities -= {"online", "margin", "dual", "feature_totals", "scaling_terms"}
        if partial:
            self.capabilities -= {"subset", "expectations"}
        if toward is not None:  # these know only a penalty toward 0
            self.capabilities -= {"online", "margin", "dual", "feature_totals", "scaling_terms"}
        #: What keeps online steps and the dual from being used.
        self.limits = tuple(
            name
            for name, there in (
                ("partial labels", partial),
                ("costs", offsets is not None),
                ("constraints", constraints is not None),
                ("l2 toward old weights", toward is not None),
            )
            if there
        )
        self.arithmetic, self.offsets, self.constraints = arithmetic, offsets, constraints
        weights = dataset.sequence_weights
        total_weight = float(dataset.n_sequences if weights is None else weights.sum())
        self._set_up(dataset, layout, l1, l2, n_threads, toward, total_weight)
        self._prepare()
        self._consistent = self._make_consistent() if partial else None

    def _set_up(
        self,
        dataset: Dataset,
        layout: Layout,
        l1: float,
        l2: float,
        n_threads: int | None,
        toward: Vector | None,
        total_weight: float,
    ) -> None:
        """Set the attributes that do not depend on where the data is."""
        self.l1, self.l2 = _strength("l1", l1), _strength("l2", l2)
        self.dataset, self.layout = dataset, layout
        self.n_threads = resolve_threads(n_threads)
        self.n_weights, self.n_sequences, self.free = layout.n_weights, dataset.n_sequences, layout.free
        self.total_weight = total_weight
        if dataset.one_position:
            self.logistic = layout.n_labels == 2 and layout.n_weights == layout.n_attributes
            self.items_per_attribute = dataset.n_sequences / max(1, layout.n_attributes)
        else:
            self.positions_per_attribute = dataset.n_tokens / max(1, layout.n_attributes)
        self.n_transitions = layout.n_transition_weights
        self.penalty = Penalty(layout.n_weights, layout.free)
        self.counts, self.phases = Counts(), Phases()
        self._observed: Vector | None = None
        # The pinned array itself (a copy would cost a sweep per gradient), and a sample of its entries to
        # detect when its owner changes it.
        self._pin: tuple[Vector, Vector] | None = None
        self._pin_count = 0
        self._set_centre(toward)

    def _set_centre(self, toward: Vector | None) -> None:
        """Sets: the weights that the l2 penalty pulls toward, and what that adds to F.

        ``(l2/2) |w - c|^2 = (l2/2) |w|^2 - (l2 c).w + (l2/2) |c|^2``, so F changes by a linear term and
        products with the Hessian do not change.
        """
        self.centre = self._pull = None
        self._centre_value = 0.0
        if toward is None:
            return
        centre = np.array(toward, dtype=np.float64)
        if centre.shape != (self.n_weights,):
            raise OptionError("toward", f"shape {centre.shape}", f"give {self.n_weights} weights")
        if not np.isfinite(centre).all():
            raise OptionError("toward", "inf or NaN", "give finite weights")
        centre[self.free] = 0.0  # unpenalised
        self.centre = self.xp.asarray(centre)
        self._pull = self.l2 * self.centre
        self._centre_value = 0.5 * vectors.dot(self.centre, self._pull)

    def scale_l2(self, scale: NDArray[np.float64]) -> None:
        """Let the l2 penalty of weight j be ``l2 scale[j]``. Sets: the penalty; no point is pinned any more.

        Trainers that know only one l2 refuse the objective from then on.
        """
        if self.centre is not None:
            raise OptionError("l2_by_group", "given", "l2 pulls toward old weights: leave one of the two out")
        each = np.array(scale, dtype=np.float64)
        if each.shape != (self.n_weights,) or not np.isfinite(each).all() or not (each > 0.0).all():
            raise OptionError("l2_by_group", each.shape, f"give {self.n_weights} positive numbers")
        each[self.free] = 0.0  # unpenalised
        self.l2_scale = self.xp.asarray(each)
        self.penalty = Penalty(self.n_weights, self.free, self.l2_scale)
        self.capabilities -= {"online", "margin", "dual", "feature_totals", "scaling_terms"}
        self.limits = tuple(dict.fromkeys((*self.limits, "l2 per group")))
        self._pin, self._pin_count = None, self._pin_count + 1

    def _off_centre(self, w: Vector, share: float = 1.0, grad: Vector | None = None) -> float:
        """What a penalty toward `centre` adds to F, and to its gradient if given; a share of it."""
        if self._pull is None:
            return 0.0
        if grad is not None:
            vectors.axpy(grad, -share, self._pull, grad)
        return share * (self._centre_value - vectors.dot(self._pull, w))

    def _make_consistent(self) -> EngineObjective:
        """The part of the loss that partial labels take off.

        With D(A) the log of the sum of exp(score) over the label sequences in A, the loss of a sequence is
        D(all) - D(those that agree with its labels). Both are computed as losses of one sequence y that
        agrees: (D(all) - score(y)) - (D(agreeing) - score(y)), the first by this objective. Costs are 0 for
        labels that agree, so its own constant scores can be added to both.
        """
        data = self.dataset
        if data.label_sets is None:
            raise DataError("the dataset has no partial labels", file=data.source)
        ids = np.unique(np.repeat(np.arange(data.n_sequences), data.lengths)[data.label_sets.rows >= 0])
        part = data.subset(ids)
        if part.label_sets is None:
            raise DataError("the dataset has no partial labels", file=data.source)
        offsets = part.label_sets.by_position(part.labels)
        if self.offsets is not None:
            offsets += self.offsets[rows(data.seq_ptr, ids)[1]]
        return type(self)(
            replace(part, label_sets=None),
            self.layout,
            l1=0.0,
            l2=0.0,
            n_threads=self.n_threads,
            arithmetic=self.arithmetic,
            offsets=offsets,
            constraints=self.constraints,
        )

    def value(self, w: Vector, subset: ArrayLike | None = None) -> float:
        """Smooth part of the objective at `w`; does not move the pin."""
        self._check_vector("w", w)
        self.counts.values += 1
        if subset is not None:
            self._require("subset")
            ids = self._check_subset(subset)
            self.counts.sequences += len(ids)
            with vectors.use_threads(self.n_threads):
                share = len(ids) / self.n_sequences
                penalty = self.penalty.value(w, self.l2 * share) + self._off_centre(w, share)
                return self._loss_on(w, ids) + penalty
        self.counts.sequences += self.n_sequences
        with vectors.use_threads(self.n_threads):
            loss = self._loss(w) + self.penalty.value(w, self.l2) + self._off_centre(w)
            return loss if self._consistent is None else loss - self._consistent._loss(w)

    def value_and_grad(
        self, w: Vector, out: Vector | None = None, subset: ArrayLike | None = None
    ) -> tuple[float, Vector]:
        """Smooth part of the objective at `w` and its gradient; pins `w` unless `subset` is given."""
        self._check_vector("w", w)
        out = self._output(out, w)
        self.counts.grads += 1
        with vectors.use_threads(self.n_threads):
            if subset is not None:
                self._require("subset")
                ids = self._check_subset(subset)
                self.counts.sequences += len(ids)
                share = len(ids) / self.n_sequences
                value = self._loss_and_grad(w, out, ids, self.l2 * share)
                value -= self.penalty.take_off(w, self.l2 * share, out)
                return value + self._off_centre(w, share, out), out
            self.counts.sequences += self.n_sequences
            # An exception must not leave the old pin with the engine's new tables.
            self._pin = None
            self._pin_count += 1
            value = self._loss_and_grad(w, out, None, self.l2)
            value -= self.penalty.take_off(w, self.l2, out)
            value += self._off_centre(w, 1.0, out)
            if self._consistent is not None:
                own = self.xp.empty_like(out)
                value -= self._consistent._loss_and_grad(w, own, None, 0.0)
                out -= own
        self._pin = w, self._sample(w)
        return value, out

    def pin(self, w: Vector) -> None:
        """Pin `w` without a gradient, on an objective that has not had one; products give the same bytes."""
        self._check_vector("w", w)
        self._pin_count += 1
        self._pin = w, self._sample(w)

    @property
    def curvature_bytes(self) -> int:
        """Memory used by the cache for Hessian products."""
        return 0

    def hvp(self, v: Vector, out: Vector | None = None) -> Vector:
        """Hessian of the smooth part at the pinned point, times `v`."""
        self._require("hvp")
        self._check_vector("v", v)
        w = self._pinned_point()
        out = self._output(out, v)
        self.counts.hvps += 1
        self.counts.sequences += self.n_sequences
        with vectors.use_threads(self.n_threads):
            self._hvp(w, v, out, self.l2)
            self.penalty.take_off(v, self.l2, out)
            if self._consistent is not None:
                own = self.xp.empty_like(out)
                self._consistent._hvp(w, v, own, 0.0)
                out -= own
        return out

    @contextmanager
    def restricted(self, mask: Any) -> Iterator[None]:
        """Context in which Hessian products are wanted only for the weights in `mask`."""
        self._require("hvp")
        w = self._pinned_point()
        if not (isinstance(mask, type(w)) and mask.shape == w.shape and mask.dtype == (w[:0] == 0.0).dtype):
            found = f"{getattr(mask, 'dtype', type(mask).__name__)}{getattr(mask, 'shape', '')}"
            raise OptionError("mask", found, f"give a boolean array of length {self.n_weights}")
        self._restrict(mask | (w != 0.0))
        try:
            yield
        finally:
            self._restrict(None)

    def hessian_diagonal(self) -> Vector:
        """Diagonal scaling at the pinned point."""
        self._require("hessian_diagonal")
        w = self._pinned_point()
        self.counts.sequences += self.n_sequences
        diagonal = self._hessian_diagonal(w)  # partial labels: of the convex part, so it stays positive
        self.penalty.add_constant(self.l2, diagonal)
        return diagonal

    def along(self, d: Vector) -> LineFunction:
        """Smooth part and its slope on the ray from the pinned point in the direction `d`."""
        self._require("along")
        self._check_vector("d", d)
        w, pin_count = self._pinned_point(), self._pin_count
        data, l2 = self._along(w, d), self.l2
        consistent = None if self._consistent is None else self._consistent._along(w, d)
        if l2 > 0.0:
            with vectors.use_threads(self.n_threads):
                inner = self.penalty.inner
                ww, wd, dd = inner(w, w), inner(w, d), inner(d, d)
                at_w = self._off_centre(w)
                pull = 0.0 if self._pull is None else vectors.dot(self._pull, d)

        def evaluate(step: float) -> tuple[float, float]:
            if self._pin_count != pin_count:
                raise PointError("this line profile belongs to an earlier point: call along(d) again")
            self.counts.values += 1
            self.counts.sequences += self.n_sequences
            step = float(step)
            loss, slope = data(step)
            if consistent is not None:
                off, off_slope = consistent(step)
                loss, slope = loss - off, slope - off_slope
            if l2 == 0.0:
                return loss, slope
            value = loss + 0.5 * l2 * (ww + step * (2.0 * wd + step * dd))  # (l2/2) |w + step d|^2
            return value + at_w - step * pull, slope + l2 * (wd + step * dd) - pull

        return evaluate

    def expectations(self, w: Vector) -> Vector:
        """Expected feature counts under the model, float64[n_weights]."""
        self._require("expectations")
        self._check_vector("w", w)
        self.counts.sequences += self.n_sequences
        return self._expectations(w)

    def weight_groups(self, kind: GroupKind) -> NDArray[np.int32]:
        """Group of every weight, int32[n_weights]."""
        return weight_groups(self.dataset, self.layout, kind).of_weights(self.layout)

    def online(self, w: Vector, rule: Rule = None, batch: int = 1) -> OnlineRun:
        """Start a run of online steps at a copy of `w`."""
        self._require("online")
        self._check_vector("w", w)
        return self._online(w, rule, batch)

    def margin(self, w: Vector, rule: MarginRule) -> MarginRun:
        """Start a run of mistake-driven steps at a copy of `w`."""
        self._require("margin")
        self._check_vector("w", w)
        for name, amount in (("l2", self.l2), ("l1", self.l1)):
            if amount > 0.0:
                raise OptionError(name, amount, "mistake-driven trainers are unregularised: set it to 0")
        return self._margin(w, rule)

    def observed(self, subset: ArrayLike | None = None) -> Vector:
        """Feature counts of the labels, float64[n_weights], read-only."""
        if subset is not None:
            part = self.layout.observed_counts(self.dataset.subset(self._check_subset(subset)))
            part.flags.writeable = False
            return self.xp.asarray(part)  # type: ignore[no-any-return]
        if self._observed is None:
            counts = self.layout.observed_counts(self.dataset)
            counts.flags.writeable = False
            self._observed = self.xp.asarray(counts)
        return self._observed

    def feature_totals(self) -> Vector:
        """Largest feature sum of each sequence: best path with all weights 1, float64[n_sequences]."""
        from crfit.engines import make_inference  # imports this module
        from crfit.engines.scaling import refuse_negative_values

        self._require("feature_totals")
        refuse_negative_values(self.dataset)
        data, ones = self.dataset, np.ones(self.n_weights)
        self.counts.sequences += self.n_sequences
        inference = make_inference(data, self.layout, ones, device=self.device, n_threads=self.n_threads)
        totals = inference.viterbi()[1]
        if data.sequence_weights is not None:
            totals[data.sequence_weights == 0.0] = 0.0
        return totals

    def scaling_terms(self) -> ScalingTerms:
        """Sums used by improved iterative scaling."""
        from crfit.engines.scaling import ScalingTerms, refuse_negative_values

        self._require("scaling_terms")
        refuse_negative_values(self.dataset)
        return ScalingTerms(self)

    @property
    def dual_bytes(self) -> int | None:
        """Memory of the dual's chains, with potentials and marginals of labels and label pairs."""
        if "dual" not in self.capabilities or self.layout.order > 1 or self.layout.n_free:
            return None
        data, n_labels = self.dataset, self.layout.n_labels
        n_pair_tables = data.n_sequences if self.layout.n_edge_attributes == 0 else data.n_tokens
        return 16 * (data.n_tokens * n_labels + n_pair_tables * n_labels**2)

    def dual(self, *, start: float | None, eta: float, l2: float | None = None) -> Dual:
        """Create the dual of the objective, or of the one with another l2."""
        self._require("dual")
        l2 = self.l2 if l2 is None else l2
        if l2 == 0.0:
            raise OptionError("l2", l2, "the dual needs l2 > 0: set it, or use newton_cg or lbfgs")
        if self.layout.n_free:
            remedy = "the dual needs a penalty on every weight: penalise or drop the intercept, or use lbfgs"
            raise OptionError("n_free", self.layout.n_free, remedy)
        if start is None:
            lengths, weights = self.dataset.lengths, self.dataset.sequence_weights
            n_positions = float(lengths.sum() if weights is None else lengths @ weights)
            start = math.log(max(1.0, n_positions / l2))
        self.counts.sequences += self.n_sequences
        return self._dual(float(start), float(eta), float(l2))

    def aggregated(self, groups: ArrayLike, base: Vector | None = None) -> EngineObjective:
        """The objective in which the attributes of a group share their weights, on the same engine.

        See `crfit.engines.aggregation`. Raises `OptionError` if the members of a group (`groups`, int[A])
        have weights for different labels. The attribute weights `base` add constant scores; needs "offsets".
        """
        return aggregate_objective(self, groups, base)

    def l1_term(self, w: Vector) -> float:
        """``l1 |w|_1`` over the penalised weights."""
        if self.l1 == 0.0:
            return 0.0
        with vectors.use_threads(self.n_threads):
            return self.l1 * self.penalty.sum_abs(w)

    def full_value(self, w: Vector, smooth: float | None = None) -> float:
        """F itself, smooth part and l1 term."""
        return (self.value(w) if smooth is None else smooth) + self.l1_term(w)

    def factor(self, i: int) -> float:
        """Weight c_i of a sequence."""
        weights = self.dataset.sequence_weights
        return 1.0 if weights is None else float(weights[i])

    def _prepare(self) -> None:
        """Set up what the hooks need from `dataset`, `layout`, `arithmetic` and `offsets`; called once."""

    @abstractmethod
    def _loss(self, w: Vector) -> float:
        """Data loss; must not change the tables of the pinned point."""

    @abstractmethod
    def _loss_and_grad(self, w: Vector, out: Vector, subset: SequenceIds | None, l2: float) -> float:
        """Fill `out` with the gradient, ``l2 w`` included, and return data loss plus ``(l2/2) |w|^2``.

        If `subset` is None, keep what `_hvp` needs. Engines that do not fuse the penalty use `add_l2`.
        """

    def _loss_on(self, w: Vector, subset: SequenceIds) -> float:
        """Data loss of these sequences; must not change the tables of the pinned point."""
        raise NotImplementedError

    def _hvp(self, w: Vector, v: Vector, out: Vector, l2: float) -> None:
        """Fill `out` with ``H v`` at the pinned point `w`, ``l2 v`` included."""
        raise NotImplementedError

    def _restrict(self, mask: Any | None) -> None:
        """Restrict `_hvp`, until the next gradient, to the weights in `mask`, all of them if None."""
        return

    def _hessian_diagonal(self, w: Vector) -> Vector:
        """Diagonal scaling at the pinned point `w`, without l2."""
        raise NotImplementedError

    def _along(self, w: Vector, d: Vector) -> LineFunction:
        """Return the function from a step length to data loss and its slope at ``w + step d``."""
        raise NotImplementedError

    def _expectations(self, w: Vector) -> Vector:
        """Return ``sum_i c_i E[Phi(x_i, .)]``."""
        raise NotImplementedError

    def _online(self, w: Vector, rule: Rule, batch: int) -> OnlineRun:
        raise NotImplementedError

    def _margin(self, w: Vector, rule: MarginRule) -> MarginRun:
        raise NotImplementedError

    def _dual(self, start: float, eta: float, l2: float) -> Dual:
        raise NotImplementedError

    def _is_vector(self, thing: Any) -> bool:
        """Whether this is an array of the engine's library, of any shape and type."""
        return isinstance(thing, self.xp.ndarray) and bool(thing.flags.c_contiguous)

    def _pinned_point(self) -> Vector:
        if self._pin is None:
            raise PointError(
                "no point is set: call value_and_grad(w), without subset, before hvp, hessian_diagonal "
                "or along"
            )
        w, sample = self._pin
        if not bool(self.xp.array_equal(sample, self._sample(w), equal_nan=True)):
            raise PointError("the weights changed since the last gradient: call value_and_grad(w) again")
        return w

    @staticmethod
    def _sample(w: Vector) -> Vector:
        sample: Vector = w[:: max(1, len(w) // PIN_SAMPLE)].copy()
        return sample

    def _require(self, capability: str) -> None:
        if capability not in self.capabilities:
            able = ", ".join(sorted(self.capabilities))
            raise CapabilityError("engine", type(self).__name__, f"lacks {capability!r}; it supports {able}")

    def _check_vector(self, name: str, vector: Any) -> None:
        if not (self._is_vector(vector) and vector.dtype == np.float64 and vector.shape == (self.n_weights,)):
            found = f"{getattr(vector, 'dtype', type(vector).__name__)}{getattr(vector, 'shape', '')}"
            raise OptionError(name, found, f"give a C-contiguous float64 array of length {self.n_weights}")

    def _output(self, out: Vector | None, source: Vector) -> Vector:
        if out is None:
            empty: Vector = self.xp.empty(self.n_weights, dtype=np.float64)
            return empty
        self._check_vector("out", out)
        if self.xp.may_share_memory(out, source):
            raise OptionError("out", "the input itself", "give a separate array for the result")
        return out

    def _check_subset(self, subset: ArrayLike) -> SequenceIds:
        """Return the sequence ids as an array; `OptionError` if any is out of range."""
        ids = np.asarray(subset)
        if ids.size == 0:
            return np.empty(0, dtype=np.int64)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            remedy = "give a one-dimensional array of sequence ids"
            raise OptionError("subset", f"{ids.dtype}{ids.shape}", remedy)
        outside = first_outside(ids, self.n_sequences)
        if outside is not None:
            raise OptionError("subset", int(ids[outside]), f"sequence ids are 0 to {self.n_sequences - 1}")
        return np.ascontiguousarray(ids, dtype=np.int64)
