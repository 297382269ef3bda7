"""Trees that NumPy grows several nodes at a time are those of the definition, to the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, random_case, random_gradients, structure_bytes
from support.examples import examples

from gpuboost.backends.reference import growth, levels
from gpuboost.types import CATEGORY_LIMITS, Candidates, CategoryLimits, Limits, Target

limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([1, 2, 5, 31, 500]),
    max_depth=st.sampled_from([0, 1, 2, 4, 9]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 5]),
    min_child_weight=st.sampled_from([0.0, 1e-3, 1.0]),
    reg_lambda=st.sampled_from([0.0, 1e-6, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01, 5.0]),
    growth=st.sampled_from(["depthwise", "leafwise", "oblivious"]),
    categories=st.sampled_from(
        [CATEGORY_LIMITS, CategoryLimits(1.0, 0.0, 1.0, 1.0), CategoryLimits(0.5, 2.0, 3.0, 9.0)]
    ),
)


@settings(max_examples=examples(160))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 7, 30, 150]),
    st.integers(1, 5),
    st.sampled_from(GRADIENT_KINDS),
    limits,
    st.booleans(),
    st.sampled_from([None, None, 0.5]),
    st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
def test_levels_are_the_definition(
    seed: int,
    n: int,
    d: int,
    kind: str,
    limit: Limits,
    whole: bool,
    drawn: float | None,
    categorical: float,
) -> None:
    rng, weights = np.random.default_rng(seed), "whole" if whole else "none"
    data = random_case(seed, n, d, missing=0.2 * (seed % 2), categorical=categorical, weights=weights).data
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    multiplicity = data.multiplicity if rows is None or data.multiplicity is None else data.multiplicity[rows]
    target = Target(0, rows, random_gradients(rng, n if rows is None else len(rows), kind, multiplicity))
    features = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)]).astype(np.int32)
    candidates = Candidates(features)
    assert levels.are_plain(limit)
    found, expected = (one.grow(data, target, 0, candidates, limit) for one in (levels, growth))
    assert structure_bytes(found) == structure_bytes(expected)
