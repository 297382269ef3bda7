"""treelite models, for FIL (nvForest), Triton and treelite's own predictor."""

from __future__ import annotations

from typing import Any

from gpuboost.export.plain import PlainTree, plain, required

_TASKS = {"logistic": "kBinaryClf", "softmax": "kMultiClf"}
_POSTPROCESSORS = {"logistic": "sigmoid", "softmax": "softmax", "log": "exponential"}


def to_treelite(model: Any) -> Any:
    """The model as a ``treelite.Model``, with float64 thresholds and leaves.

    The rows to predict hold the codes of categories, which ``model.columns_.encode(X)`` makes.

    Serialise it with ``.serialize(path)`` for Triton or FIL, or predict with ``treelite.gtil.predict``.

    Raises:
        ImportError: if treelite is not installed.
    """
    plain_model = plain(model)
    builder = required("treelite.model_builder", "to_treelite")
    k, several = len(plain_model.bias), plain_model.link == "softmax"
    targets = 1 if several else k
    outputs, zeros = [tree.output for tree in plain_model.trees], [0] * len(plain_model.trees)
    model_builder = builder.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=builder.Metadata(
            num_feature=plain_model.n_columns,
            task_type=_TASKS[plain_model.link] if plain_model.classifies else "kRegressor",
            average_tree_output=False,
            num_target=targets,
            num_class=[k] if several else [1] * targets,
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=builder.TreeAnnotation(
            num_tree=len(plain_model.trees),
            target_id=zeros if several else outputs,
            class_id=outputs if several else zeros,
        ),
        postprocessor=builder.PostProcessorFunc(name=_POSTPROCESSORS.get(plain_model.link, "identity")),
        base_scores=plain_model.bias.tolist(),
    )
    for tree in plain_model.trees:
        _add(model_builder, tree)
    return model_builder.commit()


def _add(builder: Any, tree: PlainTree) -> None:
    builder.start_tree()
    for i in range(len(tree.column)):
        builder.start_node(i)
        ways = {"left_child_key": int(tree.left[i]), "right_child_key": int(tree.right[i])}
        if tree.column[i] < 0:
            builder.leaf(float(tree.value[i]))
        elif i in tree.listed:
            to_left = tree.listed_left[i]
            builder.categorical_test(
                int(tree.column[i]),
                default_left=not to_left,
                category_list=tree.listed[i],
                category_list_right_child=not to_left,
                **ways,
            )
        else:
            missing_left = bool(tree.missing_left[i])
            threshold = float(tree.threshold[i])
            builder.numerical_test(int(tree.column[i]), threshold, default_left=missing_left, opname="<=", **ways)
        builder.gain(float(tree.gain[i]))
        builder.data_count(int(tree.rows[i]))
        builder.end_node()
    builder.end_tree()
