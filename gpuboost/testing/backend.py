"""The contract of a backend: verbs that bin, differentiate, grow, refine, add up and predict as ``Reference`` does.

Subclass ``BackendContract`` in a test module, and pytest collects its tests::

    from gpuboost.testing import BackendContract

    class TestMyMachine(BackendContract):
        def machine(self):
            return MyMachine()

Tests of what the machine does not declare in its ``offers`` are skipped.
"""

from __future__ import annotations

from gpuboost.testing.fit_contract import FitContract
from gpuboost.testing.model_contract import ModelContract
from gpuboost.testing.target_contract import TargetContract
from gpuboost.testing.tree_contract import TreeContract


class BackendContract(TargetContract, TreeContract, ModelContract, FitContract):
    """A suite of tests of one machine.

    ``rows``, ``summed`` and ``rounds`` are its sizes, ``machine`` and the methods beside it are for subclasses to
    override; see ``MachineCases``.
    """
