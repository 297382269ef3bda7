"""Ring buffer of trees on the device: each stays until it is collected or its slot is needed.

A tree's record is its head and its nodes. Records are in a ring; when half of it is full, that half is fetched in one
copy, and when its slots are needed again the host waits for the device: once in ``SLOTS`` trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.trees.tree import NODE
from gpuboost.backends.numerics.fixed_point import NOT_FINITE
from gpuboost.components import TreeComponent
from gpuboost.errors import DeviceError, InputError
from gpuboost.types import Array, Component, Ensemble, FittedTree, Nodes

SLOTS = 128
AT_ONCE = 64  # trees whose nodes are converted together, and whose arrays are then parts of the same ones
RING_BYTES = 256 << 20  # deep trees have fewer slots

HEAD = np.dtype([("unit_h", np.float64), ("n_nodes", np.int32), ("error", np.int32)])


class TreeRing:
    """Records of trees of at most ``capacity`` nodes. ``heads`` and ``nodes`` are bytes, for the kernels to fill."""

    def __init__(self, runtime: Runtime, capacity: int, outputs: int = 1, slots: int = SLOTS) -> None:
        self._runtime, self.capacity = runtime, capacity
        fitting = min(slots, RING_BYTES // (capacity * NODE.itemsize))
        # a round's trees lie in one half: when it is fetched, all that was launched for it is on its way
        self._half = outputs * max(1, fitting // (2 * outputs))
        self.slots = 2 * self._half
        self.heads = runtime.zeros(self.slots * HEAD.itemsize, np.uint8)
        self.nodes = runtime.zeros(self.slots * capacity * NODE.itemsize, np.uint8)
        self._hosts = [
            (runtime.pinned(self._half * HEAD.itemsize, np.uint8), runtime.pinned(self._half_bytes, np.uint8))
            for _ in range(2)
        ]
        self._waiting: list[list[DeviceTree]] = [[], []]  # of each half: trees that are not on the host yet
        self._fetched = [0, 0]  # of those, how many are under way
        self._there: list[Any] = [None, None]  # events of each half: what is under way has arrived
        self._next = 0

    @property
    def _half_bytes(self) -> int:
        return self._half * self.capacity * NODE.itemsize

    def add(self, output: int, version: int, shape: Nodes | None = None) -> DeviceTree:
        """Handle of a tree that will be recorded at ``handle.slot``. shape: its nodes, if the host has them."""
        half, first = divmod(self._next, self._half)
        if first == 0:
            self._fetch(1 - half)
            if self._waiting[half]:  # fetched when the other half began to fill; the device goes on meanwhile
                self._runtime.wait_for(self._there[half])
                self._read(half)
        tree = DeviceTree(self, self._next, output, version, shape)
        self._waiting[half].append(tree)
        self._next = (self._next + 1) % self.slots
        return tree

    @property
    def room(self) -> int:
        """Trees that may be added before a half is fetched, which must be launched after them."""
        return self._half - self._next % self._half

    def collect(self) -> None:
        """Copy all trees to the host. Raises InputError if a gradient of one of them was not a finite number."""
        if any(self._waiting):
            for half in range(2):
                self._fetch(half)
            self._runtime.wait()
            for half in range(2):
                self._read(half)

    def record(self, slot: int) -> tuple[Array, Array]:
        """The head and the nodes at a slot, as bytes."""
        size = self.capacity * NODE.itemsize
        head = self.heads[slot * HEAD.itemsize : (slot + 1) * HEAD.itemsize]
        return head, self.nodes[slot * size : (slot + 1) * size]

    def _fetch(self, half: int) -> None:
        if len(self._waiting[half]) == self._fetched[half]:
            return
        heads, nodes = self._hosts[half]
        self._runtime.read(self.heads[half * heads.nbytes : (half + 1) * heads.nbytes], heads)
        self._runtime.read(self.nodes[half * nodes.nbytes : (half + 1) * nodes.nbytes], nodes)
        self._fetched[half], self._there[half] = len(self._waiting[half]), self._runtime.mark()

    def _read(self, half: int) -> None:
        heads = self._hosts[half][0].view(HEAD)
        nodes = self._hosts[half][1].reshape(self._half, self.capacity, NODE.itemsize)
        trees, self._waiting[half], self._fetched[half] = self._waiting[half], [], 0
        for first in range(0, len(trees), AT_ONCE):
            some = trees[first : first + AT_ONCE]
            places = [tree.slot - half * self._half for tree in some]
            for error in heads["error"][places].tolist():
                check_error(error)
            each = [
                nodes[place, :count] for place, count in zip(places, heads["n_nodes"][places].tolist(), strict=True)
            ]
            _give_host_trees(some, each, heads["unit_h"][places])


@dataclass(eq=False)
class DeviceTree:
    """Handle of a tree on the device, in the loop and in ``Progress.trees``."""

    ring: TreeRing
    slot: int
    output: int
    version: int
    shape: Nodes | None = None  # its nodes, if the host has them; one record for all trees that share them
    host: FittedTree | None = field(default=None)

    @property
    def fetched(self) -> FittedTree:
        """The tree on the host, once it has been collected."""
        assert self.host is not None
        return self.host

    @property
    def size(self) -> int:
        """Maximum number of nodes. The actual number is known on the device only."""
        return self.ring.capacity

    def as_tree(self) -> FittedTree:
        """This handle, typed as a ``FittedTree``."""
        return cast(FittedTree, self)


def collected(ensemble: Ensemble) -> Ensemble:
    """The ensemble with every tree in the host's memory."""
    trees: tuple[Any, ...] = ensemble.trees
    in_leaves: list[Any] = [learner.tree for learner in ensemble.components if isinstance(learner, TreeComponent)]
    device_trees = [tree for tree in (*trees, *in_leaves) if isinstance(tree, DeviceTree)]
    if not device_trees:
        return ensemble
    for tree in device_trees:
        if tree.host is None:
            tree.ring.collect()

    def component(learner: Component) -> Component:
        return replace(learner, tree=_fetched(learner.tree)) if isinstance(learner, TreeComponent) else learner

    return replace(ensemble, trees=tuple(map(_fetched, trees)), components=tuple(map(component, ensemble.components)))


def _fetched(tree: Any) -> FittedTree:
    return tree.fetched if isinstance(tree, DeviceTree) else cast(FittedTree, tree)


def host_nodes(nodes: Nodes, value: NDArray[np.float64]) -> NDArray[Any]:
    """A tree of the host in the layout of a device's kernels: (v,) NODE, without sums and gains."""
    records = np.zeros(len(nodes.feature), NODE)
    for name in ("feature", "bin", "missing_left", "left", "right", "left_set"):
        records[name] = getattr(nodes, name)
    records["value"] = value
    return records


def _give_host_trees(trees: list[DeviceTree], nodes: list[NDArray[Any]], unit_h: NDArray[np.float64]) -> None:
    """Set ``host`` of the trees from the nodes of each, (v,) NODE as bytes. A field's arrays are parts of one array."""
    real, counts = np.concatenate(nodes).view(NODE)[:, 0], [len(tree_nodes) for tree_nodes in nodes]
    fields = {name: np.ascontiguousarray(real[source].astype(dtype)) for name, source, dtype in _FIELDS}
    fields["cover"] *= np.repeat(unit_h, counts)
    parts = [fields[name] for name, _, _ in _FIELDS]
    ends = np.cumsum(counts).tolist()
    for tree, begin, end in zip(trees, [0, *ends], ends, strict=False):
        value, *of_nodes = (part[begin:end] for part in parts)
        tree.host = FittedTree(tree.shape or Nodes(*of_nodes), value, tree.output, tree.version)


_FIELDS: tuple[tuple[str, str, Any], ...] = (  # of ``Nodes`` in their order, after the values of leaves
    ("value", "value", np.float64),
    ("feature", "feature", np.int32),
    ("bin", "bin", np.int32),
    ("missing_left", "missing_left", np.bool_),
    ("left", "left", np.int32),
    ("right", "right", np.int32),
    ("gain", "gain", np.float64),
    ("cover", "sum_h", np.float64),
    ("count", "count", np.int64),
    ("left_set", "left_set", np.uint32),
)


def check_error(error: int) -> None:
    """Raise the error of ``Head.error`` in record.cuh, if any."""
    if error & 1:
        raise InputError(NOT_FINITE)
    if error & 2:
        raise DeviceError(
            "sampling: more rows were drawn than there is room for, which happens once in 1e20 rounds. "
            "Pass another random_state, or device='cpu'."
        )
