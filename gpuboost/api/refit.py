"""``model.refit``: new leaf values for a fitted model, from other rows."""

from __future__ import annotations

import copy
from abc import ABC
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from gpuboost import backends, losses
from gpuboost.arguments import is_real
from gpuboost.data.dataset import Dataset
from gpuboost.data.frames import collected
from gpuboost.data.query_column import without_group
from gpuboost.data.tables import as_table
from gpuboost.data.targets import refuse_complex
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.learning_rates import Averaging
from gpuboost.losses.custom import SavedCustom
from gpuboost.losses.protocol import Loss
from gpuboost.recipe import Recipe
from gpuboost.training import targets
from gpuboost.training.constraints.by_column import ByColumn
from gpuboost.training.files import Saved
from gpuboost.training.fit_record import FitRecord
from gpuboost.training.init_model import Start
from gpuboost.training.leaf_refit import refitted
from gpuboost.training.offsets import with_offsets
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.training.parameters.seeds import seed_of
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.placement.device_arrays import on_host
from gpuboost.training.rows import LabelledRows, bin_rows, check_columns, labelled, labelled_dataset
from gpuboost.training.targets import TrainingTarget
from gpuboost.types import Ensemble

UNUSED = (
    "execution", "feature_costs", "feature_weights", "forced_splits", "interaction_cst", "langevin", "learners",
    "posterior_samples", "sampling",
)  # fmt: skip
"""Parameters that choose the shapes of trees, and have no part in leaf values of all rows."""


class RefitMixin(ABC):
    """Mixin of ``GradientBoosting``: leaf values from new rows."""

    ensemble_: Ensemble
    loss_: Loss
    _saved: Callable[[], Saved]
    _settings: Callable[[], dict[str, Any]]
    _restore: Callable[[Saved], None]
    _needs_trees: Callable[[str], None]
    _numbers: Callable[[Any], Any]
    _target: Callable[[LabelledRows], TrainingTarget]

    def refit(
        self, X: Any, y: Any = None, decay: float = 0.9, sample_weight: Any = None, *, init_score: Any = None
    ) -> Self:
        """A new fitted estimator with the same trees, whose leaf values follow new rows.

        Tree by tree, a leaf value becomes ``decay * old + (1 - decay) * new`` (LightGBM: ``Booster.refit``; XGBoost:
        ``process_type="update"`` with the updater ``refresh``). The new value is computed from the new rows by the
        model's loss, ``step`` and ``reg_lambda``, at the scores of the refitted trees before it; a leaf that no row
        reaches has a new value of 0. The bias changes in the same way, towards the start of a fit to the new rows.
        Splits, bins, gains and covers stay, so importances do too. This estimator is not changed.

        It runs on the CPU, in ``n_jobs`` threads; the bytes of the result are the same on every machine. With
        ``decay=0`` and the rows of the fit, a model whose leaf values were of all rows gets the same ones again, unless
        it has ordered target statistics: in a refit each row has those of a new row, and its own target is in them.
        ``guarantee_`` and ``best_iteration_`` of the result are not known.

        Parameters
        ----------
        X : (n, d) data with the columns of the training data, as in ``fit``, or a ``gb.Dataset``
        y : (n,) numbers; of a classifier labels, all known to the model
        decay : float from 0 to 1
            Share of the old leaf values (LightGBM: ``decay_rate``).
        sample_weight : (n,) not negative, optional
        init_score : (n,) or (n, K) numbers, or one number, optional
            Offsets, as in ``fit``; needed if the model was fitted with some.

        Raises
        ------
        InputError
            If the rows do not suit the model, or the model is not of trees or was made by Langevin boosting.
        RecipeError
            If ``decay`` is not a number from 0 to 1.
        """
        return self._refit(X, y, decay, sample_weight, None, init_score)

    def _refit(
        self, X: Any, y: Any, decay: Any, sample_weight: Any, group: Any, init_score: Any,
        add_facts: Callable[[LabelledRows], LabelledRows] = lambda rows: rows,
    ) -> Self:  # fmt: skip
        """``refit``. add_facts: as of ``_fit``."""
        self._needs_trees("refit")
        share = _share(decay)
        saved = self._saved()
        if isinstance(saved.fitted["learning_rate"], Averaging):
            raise InputError(
                "refit: it goes from round to round, and the trees of gb.Averaging() are all fitted at the start. Fit "
                "a forest to the new rows; gb.sum_models averages models."
            )
        if saved.params.get("langevin") is not None or saved.record.chain is not None or saved.ensemble.scale != 1.0:
            raise InputError(
                "refit: leaf values of Langevin boosting have noise and shrinkage, so the model is a draw of a chain; "
                "new leaf values would be none. Continue the chain on the new rows with fit(init_model=)."
            )
        rows, x = self._new_rows(X, y, sample_weight, group, init_score)
        target = self._target_again(saved, add_facts(rows))
        targets.check_facts_of_rows(target)
        target = with_offsets(target, Start(saved.columns, saved.ensemble, offsets=saved.offsets))
        recipe = _recipe(saved, target)
        backend = backends.get("cpu", threads_of(saved.params["n_jobs"]))
        ensemble = refitted(
            saved.ensemble,
            recipe,
            bin_rows(backend, x, saved.ensemble.cuts, target.y, target.rows),
            backend,
            decay=share,
            sequences=saved.columns.sequences,
            seed=seed_of(saved.params["random_state"]),
        )
        made: Self = copy.copy(self)
        vars(made).pop("fit_report_", None)
        with_offset = saved.offsets or target.rows.offset is not None
        made._restore(
            replace(
                saved,
                ensemble=ensemble,
                loss=target.loss,
                best_iteration=None,
                best_score=None,
                record=FitRecord(params=saved.record.params),
                offsets=with_offset,
            )
        )
        return made

    def _new_rows(self, X: Any, y: Any, sample_weight: Any, group: Any, init_score: Any) -> tuple[LabelledRows, Any]:
        """The rows, checked, and their numbers in the columns of the model."""
        X, group = without_group(X, group)
        y, sample_weight, init_score = on_host(y), on_host(sample_weight), on_host(init_score)
        if isinstance(X, Dataset):
            return labelled_dataset(X, y, sample_weight, group, init_score), self._numbers(X)
        X = collected(on_host(X))
        refuse_complex(y)
        table = as_table(X)
        rows = labelled(table, y, sample_weight, table.shape[0], group, init_score)
        return rows, self._numbers(X)

    def _target_again(self, saved: Saved, rows: LabelledRows) -> TrainingTarget:
        """The target of the new rows, by the loss and the classes of the model."""
        loss: Any = saved.loss
        check_columns(rows.y, loss)
        if isinstance(loss, SavedCustom):
            custom_loss = losses.get(saved.params["loss"], loss.n_outputs)
            if custom_loss.name == loss.name:
                loss = custom_loss
            loss.check_target(rows.y)  # which a loss that was read from a file refuses
        if saved.classes is not None:
            return targets.known_classes(loss, saved.params.get("class_weight"), saved.classes, rows)
        known = copy.copy(self)
        vars(known)["loss"] = loss
        return known._target(rows)


def _share(decay: Any) -> float:
    if not is_real(decay, 0.0, 1.0):
        raise RecipeError(f"decay: must be a number from 0 to 1, the share of the old leaf values; got {shown(decay)}.")
    return float(decay)


def _recipe(saved: Saved, target: TrainingTarget) -> Recipe:
    """The recipe of the model's parameters: loss, step, regularisation and monotonic constraints count."""
    params = {**saved.params, **dict.fromkeys(UNUSED), "categorical_encoding": "auto"}
    held = ByColumn.of(params, saved.columns).directions
    if held is not None:
        held = (*held, *(0,) * (saved.ensemble.cuts.n_columns - len(held)))
    return recipe_from(params, target.loss, len(target.y), None, ByColumn(held))
