"""A dataset in the ids of other alphabets.

Held-out data is read with the alphabets of the training data, but rare attributes may be dropped from those
afterwards, and data may come with alphabets of its own. Ids are translated by name,

    new_id[a] = alphabet.find(name[a]),  -1 where the other alphabet lacks the name,

once for each name and not for each occurrence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crfit.alphabet import Alphabet, HasAlphabets
from crfit.dataset.ragged import keep

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["recode"]


def recode(dataset: Dataset, alphabets_of: HasAlphabets) -> Dataset:
    """Give a dataset the alphabets of another one, or of a model.

    Parameters
    ----------
    dataset : Dataset
        Sequences with any alphabets.
    alphabets_of : Dataset or Model
        Whose ids to use. Attributes that it lacks are left out and counted in ``n_dropped``; labels that it
        lacks get ids after its own, in a copy, so that scoring counts them as errors.

    Returns
    -------
    Dataset
        The same sequences; `dataset` itself if the alphabets are equal.
    """
    attributes, edges = alphabets_of.attribute_alphabet, alphabets_of.edge_alphabet
    if (
        dataset.attribute_alphabet == attributes
        and dataset.edge_alphabet == edges
        and dataset.label_alphabet == alphabets_of.label_alphabet
    ):
        return dataset
    attr_ptr, attr_ids, attr_kept = _translate(
        dataset.attr_ptr, dataset.attr_ids, dataset.attribute_alphabet, attributes
    )
    edge_ptr, edge_ids, n_edges_dropped = dataset.edge_ptr, dataset.edge_ids, 0
    if edge_ptr is not None and edge_ids is not None:
        edge_ptr, edge_ids, edges_kept = _translate(edge_ptr, edge_ids, dataset.edge_alphabet, edges)
        n_edges_dropped = int(np.count_nonzero(~edges_kept))
    label_alphabet, labels = alphabets_of.label_alphabet, None
    if dataset.labels is not None:
        label_alphabet = label_alphabet.copy()
        new_labels = label_alphabet.native.add_all(*dataset.label_alphabet.to_arrays())
        labels = new_labels[dataset.labels]
    return replace(
        dataset,
        attr_ptr=attr_ptr,
        attr_ids=attr_ids,
        attr_values=None if dataset.attr_values is None else dataset.attr_values[attr_kept],
        labels=labels,
        edge_ptr=edge_ptr,
        edge_ids=edge_ids,
        attribute_alphabet=attributes,
        label_alphabet=label_alphabet,
        edge_alphabet=edges,
        n_dropped=dataset.n_dropped + int(np.count_nonzero(~attr_kept)) + n_edges_dropped,
    )


def _translate(
    ptr: NDArray[np.int64], ids: NDArray[np.int32], old: Alphabet, new: Alphabet
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Offsets and ids under another alphabet, and which entries stay."""
    new_ids = new.native.find_all(*old.to_arrays())[ids]
    kept = new_ids >= 0
    return keep(ptr, kept), new_ids[kept], kept
