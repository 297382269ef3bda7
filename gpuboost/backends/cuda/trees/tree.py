"""The records of ``gpuboost/kernels/common/tree.cuh`` as numpy dtypes: same names, same offsets, no padding.

On the device they are plain bytes, one row per record, since CuPy has no structured dtypes; on the host they are NumPy
views.

Writers of the fields, in the order of a round (arrays are on the device, one ``State`` and one node table per output):

    target      scale_g .. unit_h, weight, m, wide, error of ``State``; ``error`` is cleared by its reader
    growth      total_g, total_h, rows_per_h, n_nodes, n_leaves and its own fields; all of ``Node`` but value
    leaves      ``Node.value`` at leaves; elsewhere it stays 0
    round       ``iteration``
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.types import Array, CategoryLimits

STATE = np.dtype(
    [
        ("scale_g", np.float64), ("scale_h", np.float64), ("unit_g", np.float64), ("unit_h", np.float64),
        ("rows_per_h", np.float64), ("weight", np.int64), ("total_g", np.int64), ("total_h", np.int64),
        ("m", np.int32), ("wide", np.int32), ("error", np.int32), ("n_nodes", np.int32), ("n_leaves", np.int32),
        ("level_begin", np.int32), ("n_lines", np.int32), ("finished", np.int32),
        ("iteration", np.uint32), ("arrived", np.uint32), ("n_made", np.int32), ("spare", np.int32),
    ]
)  # fmt: skip

NODE = np.dtype(
    [
        ("sum_g", np.int64), ("sum_h", np.int64), ("left_g", np.int64), ("left_h", np.int64),
        ("gain", np.float64), ("value", np.float64),
        ("feature", np.int32), ("bin", np.int32), ("missing_left", np.int32), ("left", np.int32), ("right", np.int32),
        ("count", np.int32), ("depth", np.int32), ("state", np.int32), ("slot", np.int32), ("parent", np.int32),
        ("place", np.int32), ("made", np.int32), ("left_set", np.uint32, (8,)),
    ]
)  # fmt: skip

LINE = np.dtype(
    [
        ("node", np.int32), ("sibling", np.int32), ("begin", np.int32), ("step", np.int32), ("listed", np.int32),
        ("first", np.uint32), ("rows", np.int32), ("spare", np.int32),
    ]
)  # fmt: skip

ROUTE = np.dtype([("feature", np.int32), ("rule", np.uint32), ("slot", np.int32), ("line", np.int32)])

RULE = np.dtype(
    [
        ("reg_lambda", np.float64), ("min_child_weight", np.float64), ("min_split_gain", np.float64),
        ("categories", np.float64, (len(CategoryLimits._fields),)),
        ("reg_alpha", np.float64), ("max_delta_step", np.float64), ("path_smooth", np.float64),
        ("max_leaves", np.int32), ("max_depth", np.int32), ("min_samples_leaf", np.int32), ("symmetric", np.int32),
        ("one_value", np.int32), ("draws", np.int32), ("most_splits", np.int32), ("spare", np.int32),
    ]
)  # fmt: skip


def empty_records(runtime: Runtime, count: int, dtype: np.dtype[Any]) -> Array:
    """(count, itemsize) uint8 on the device, zeros."""
    return runtime.zeros((count, dtype.itemsize), np.uint8)


def as_bytes(records: NDArray[Any]) -> NDArray[np.uint8]:
    """(count,) records to the (count, itemsize) bytes that a device holds."""
    return records.view(np.uint8).reshape(len(records), records.dtype.itemsize)


def as_records(fetched: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """(count,) records of the (count, itemsize) bytes that came from a device."""
    return fetched.view(dtype).reshape(len(fetched))
