"""The layout of data in shards against that of the whole data."""

import numpy as np
import pytest

from crfit.data.shards import Shards
from crfit.layout import Layout, make_layout
from crfit.layout.sharded import make_layout_of_shards, shard_layout
from oracle import feature_ids, random_dataset

CASES = [
    {},
    {"weights": "all"},
    {"transitions": "observed", "boundary": True},
    {"transitions": "none"},
    {"order": 2, "transitions": "observed"},
    {"weights": "all", "order": 2, "boundary": True, "n_free": 3},
    {"n_free": 2},
]


def same(a: Layout, b: Layout) -> bool:
    names = ("state_ptr", "state_labels", "edge_ptr", "edge_codes")
    lists = [(getattr(a, name), getattr(b, name)) for name in names]
    lists += zip(a.transition_codes, b.transition_codes, strict=True)
    equal = all(x is y or np.array_equal(x, y) for x, y in lists)
    return equal and (a.n_weights, a.free, a.transitions) == (b.n_weights, b.free, b.transitions)


def layouts(shards, **options):
    """The layout of all, and those of the shards."""
    loaded = [shards.load(i) for i in range(shards.n_shards)]
    whole = make_layout_of_shards(shards, loaded, **options)
    return whole, [shard_layout(whole, shard.attributes, shard.edges) for shard in loaded]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("n", [1, 3, 20])
def test_shards_have_the_layout_of_the_whole_data(options, n):
    data = random_dataset(
        1, [4, 1, 6, 3, 2] * 5, n_labels=3, n_attributes=30, n_edge_attributes=7, attributes_per_position=2
    )
    shards = Shards.of(data, n)
    layout, parts = layouts(shards, **options)
    assert same(layout, make_layout(data, **options))
    names = {place: name for name, place in feature_ids(layout).items()}
    for i, part in enumerate(parts):
        shard = shards.load(i)
        assert part.layout.n_weights == len(part.places)
        assert (np.diff(part.places) > 0).all()
        for name, place in feature_ids(part.layout).items():  # the same feature, with ids of the shard
            if name[0] == "state":
                name = ("state", int(shard.attributes[name[1]]), *name[2:])
            elif name[0] == "edge":
                name = ("edge", int(shard.edges[name[1]]), *name[2:])
            assert names[part.places[place]] == name
        free = np.zeros(layout.n_weights, dtype=bool)
        free[layout.free] = True
        own = np.zeros(part.layout.n_weights, dtype=bool)
        own[part.layout.free] = True
        assert np.array_equal(own, free[part.places])


def test_a_shard_holds_only_the_attributes_that_occur_in_it():
    data = random_dataset(2, [5] * 40, n_labels=2, n_attributes=1000, attributes_per_position=2)
    _, parts = layouts(Shards.of(data, 8), weights="all")
    shards = Shards.of(data, 8)
    for i, part in enumerate(parts):
        assert part.layout.n_attributes == len(np.unique(shards.load(i).dataset.attr_ids)) < 100
