"""Damaged, truncated, hostile and newer model files: a clear refusal that says where, and nothing else."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

import gpuboost as gb
from gpuboost.errors import InputError
from gpuboost.model import file
from gpuboost.types import Cuts, Ensemble, FittedTree, Nodes

Json = dict[str, Any]


def small() -> Ensemble:
    """Twice the tree of docs/model_file.md: a numeric root, a categorical left child:  0 -> (1 -> (3, 4), 2)."""
    cuts = Cuts((np.array([0.5, 1.5]), np.empty(0)), (None, np.array([10, 30, 20])))
    nodes = Nodes(
        feature=np.array([0, 1, -1, -1, -1], np.int32),
        bin=np.array([1, 0, 0, 0, 0], np.int32),
        missing_left=np.array([True, False, False, False, False]),
        left=np.array([1, 3, 0, 0, 0], np.int32),
        right=np.array([2, 4, 0, 0, 0], np.int32),
        gain=np.array([2.0, 1.0, 0.0, 0.0, 0.0]),
        cover=np.array([4.0, 3.0, 1.0, 2.0, 1.0]),
        count=np.array([4, 3, 1, 2, 1]),
        left_set=np.array([[0] * 8, [5] + [0] * 7, [0] * 8, [0] * 8, [0] * 8], np.uint32),
    )
    tree = FittedTree(nodes, np.array([0.0, 0.0, 0.1, -0.2, 0.3]), 0, 0)
    return Ensemble(np.array([0.25]), cuts, (tree, tree), (0.1, 0.1))


TEXT = file.to_json(small(), {"name": "squared"}, {}, {"learning_rate": 0.1}, {})


def changed(change: Callable[[Json], object]) -> str:
    found = copy.deepcopy(json.loads(TEXT))
    change(found)
    return json.dumps(found)


def put(path: str, value: object) -> Callable[[Json], None]:
    """Set one entry; a path such as 'trees.0.left.1'."""

    def change(found: Any) -> None:
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in way:
            found = found[step]
        found[last] = value

    return change


def refused(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        file.from_json(text)
    message = str(caught.value)
    assert message.startswith("model file: ")
    assert len(message) < 400
    return message


def test_the_example_itself_is_good() -> None:
    assert file.to_json(file.from_json(TEXT).ensemble, {"name": "squared"}, {}, {"learning_rate": 0.1}, {}) == TEXT


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("version", 0, "version: an integer of 1"),
        ("version", True, "version: an integer"),
        ("version", "1", "version: an integer"),
        ("loss", [], "loss: an object was expected; found list"),
        ("parameters", None, "parameters: an object was expected; found None"),
        ("bias", [], "bias: there is one number for each output"),
        ("bias", "0.5", "bias: a list was expected; found '0.5'"),
        ("bias", [True], r"bias\[0\]: a list of finite numbers was expected; found True"),
        ("bias", [10**400], r"bias\[0\]: a list of finite numbers"),
        ("bias", [0.0, 0.0, 0.0], "trees: there is one for each of the 3 outputs in every round; found 2"),
        ("scale", 0.0, "scale: it is greater than 0; found 0.0"),
        ("scale", -1.0, "scale: it is greater than 0"),
        ("scale", None, r"scale\[0\]: a list of finite numbers was expected; found None"),
        ("scale", [], "scale: a model without rounds has the scale 1"),
        ("scale", [0.5, 0.0], r"scale\[1\]: it is greater than 0; found 0.0"),
        ("scale", [0.5, 0.6], r"scale\[1\]: a model is shrunk, so it never grows"),
        ("scale", [0.5, 0.4, 0.3], "scale: there is one for each of the"),
        ("scale", [0.5, "0.4"], r"scale\[1\]: a list of finite numbers was expected"),
        ("features", {}, "features: a list was expected"),
        ("features.0", {"thresholds": [1.0], "categories": [1]}, r"features\[0\]: there is no entry of this name"),
        ("features.0", [], r"features\[0\]: an object was expected"),
        ("features.0.thresholds", [0.5, 0.5], r"features\[0\]\.thresholds: up to 254 increasing numbers"),
        ("features.0.thresholds", [1.0, 0.5], r"features\[0\]\.thresholds: up to 254 increasing"),
        ("features.0.thresholds", list(range(255)), "up to 254 increasing"),
        ("features.1.categories", [1, 1, 2], r"features\[1\]\.categories: up to 255 different codes"),
        ("features.1.categories", list(range(256)), "up to 255 different codes"),
        ("features.1.categories", [1.5, 2, 3], r"features\[1\]\.categories\[0\]: a list of integers"),
        ("features.1.categories", [2**63, 2, 3], r"features\[1\]\.categories\[0\]: a list of integers"),
        ("trees", {}, "trees: a list was expected"),
        ("trees.1", 7, r"trees\[1\]: an object was expected; found 7"),
        ("trees.0.output", 1, r"trees\[0\]\.output: an integer of 0 to 0 was expected; found 1"),
        ("trees.0.version", -2, r"trees\[0\]\.version: an integer"),
        ("trees.0.factor", "x", r"trees\[0\]\.factor"),
        ("trees.0.feature", [], r"trees\[0\]\.feature: a tree has at least one node"),
        ("trees.0.feature.1", 2, r"trees\[0\]\.feature\[1\]: a list of integers of -1 to 1 was expected; found 2"),
        ("trees.0.feature.1", 1.0, r"trees\[0\]\.feature\[1\]: a list of integers .* found 1\.0"),
        ("trees.0.feature.1", -1, r"trees\[0\]\.left\[1\]: a leaf has no child, written 0; found 3"),
        ("trees.0.feature.2", 0, r"trees\[0\]\.left\[2\]: a child comes after its parent; found 0"),
        (
            "trees.0.left",
            [1, 3, 0, 0],
            r"trees\[0\]\.left: 5 entries were expected, as in the lists beside it; found 4",
        ),
        ("trees.0.left.0", 0, r"trees\[0\]\.left\[0\]: a child comes after its parent; found 0"),
        ("trees.0.left.1", 1, r"trees\[0\]\.left\[1\]: a child comes after its parent; found 1"),
        ("trees.0.left.1", 5, r"trees\[0\]\.left\[1\]: a list of integers of 0 to 4 was expected; found 5"),
        ("trees.0.left.1", -1, r"trees\[0\]\.left\[1\]: a list of integers of 0 to 4"),
        ("trees.0.left.1", 2, r"trees\[0\]\[2\]: every node but the first is the child of one other; found 2"),
        ("trees.0.right.1", 3, r"trees\[0\]\[3\]: every node but the first is the child of one other; found 2"),
        ("trees.1.right.4", 3, r"trees\[1\]\.right\[4\]: a leaf has no child, written 0; found 3"),
        ("trees.0.bin.0", 3, r"trees\[0\]\.bin\[0\]: a split is at one of its feature's bins; found 3"),
        ("trees.0.bin.0", 256, r"trees\[0\]\.bin\[0\]: a list of integers of 0 to 255"),
        ("trees.0.bin.2", 1, r"trees\[0\]\.bin\[2\]: it is 0 at a leaf; found 1"),
        ("trees.0.missing_left.0", True, r"trees\[0\]\.missing_left\[0\]: a list of integers of 0 to 1"),
        ("trees.0.missing_left.0", 2, r"trees\[0\]\.missing_left\[0\]: a list of integers of 0 to 1"),
        ("trees.0.missing_left.2", 1, r"trees\[0\]\.missing_left\[2\]: it is 0 at a leaf"),
        ("trees.0.gain.2", 0.5, r"trees\[0\]\.gain\[2\]: it is 0 at a leaf"),
        ("trees.0.cover.0", -0.5, r"trees\[0\]\.cover\[0\]: it is not negative; found -0\.5"),
        ("trees.0.count.0", -1, r"trees\[0\]\.count\[0\]: a list of integers"),
        ("trees.0.count.0", 10**30, r"trees\[0\]\.count\[0\]: a list of integers"),
        ("trees.0.value.0", 0.5, r"trees\[0\]\.value\[0\]: it is 0 but at leaves; found 0\.5"),
        ("trees.0.value.2", None, r"trees\[0\]\.value\[2\]: a list of finite numbers was expected; found None"),
        ("trees.0.sets", [], r"trees\[0\]\.sets: there are 1 categorical nodes in this tree; found 0"),
        ("trees.0.sets.0", [1], r"trees\[0\]\.sets\[0\]: a pair of a node and a list of bins"),
        ("trees.0.sets.0.0", 0, r"trees\[0\]\.sets\[0\]\[0\]: an integer of 1 to 1 was expected; found 0"),
        ("trees.0.sets.0.1", [2, 0], r"trees\[0\]\.sets\[0\]\[1\]: increasing bins"),
        ("trees.0.sets.0.1", [0, 3], r"trees\[0\]\.sets\[0\]\[1\]\[1\]: a list of integers of 0 to 2"),
    ],
)
def test_a_wrong_value_is_found_and_named(path: str, value: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        file.from_json(changed(put(path, value)))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([0, 2], r"features\[1\]\.column: an integer of 1 to 1 was expected; found 2"),
        ([0, 0], r"features\[1\]\.column: an integer of 1 to 1 was expected; found 0"),
        ([1, 2], r"features\[0\]\.column: an integer of 0 to 0 was expected; found 1"),
        ([-1, 0], r"features\[0\]\.column: an integer of 0 to 0"),
        ([0, 1.0], r"features\[1\]\.column: an integer of 1 to 1"),
        ([0, None], r"features\[1\]: the entry 'column' is missing"),
    ],
)
def test_columns_come_in_order_and_only_categories_share_one(columns: list[Any], words: str) -> None:
    def change(found: Json) -> None:
        for line, column in zip(found["features"], columns, strict=True):
            if column is not None:
                line["column"] = column

    with pytest.raises(InputError, match=words):
        file.from_json(changed(change))


@pytest.mark.parametrize("key", file.KEYS)
def test_a_missing_entry_is_named(key: str) -> None:
    message = refused(changed(lambda found: found.pop(key)))
    assert key in message


def test_an_unknown_entry_is_named() -> None:
    assert "'surprise'" in refused(changed(put("surprise", 1)))
    assert "trees[0]" in refused(changed(put("trees.0.surprise", 1)))
    assert "trees[0]: the entry 'gain' is missing" in refused(changed(lambda found: found["trees"][0].pop("gain")))


def test_a_newer_file_says_so() -> None:
    message = refused(changed(put("version", 6)))
    assert "made by a newer gpuboost" in message
    assert "columns.statistics" in refused(changed(put("version", 3)))
    newer = {"format": "gpuboost", "version": 7, "whatever": "that may be"}
    assert "made by a newer gpuboost" in refused(json.dumps(newer))


def test_shared_nodes_are_those_of_the_first_tree() -> None:
    x = np.arange(40.0).reshape(20, 2)
    shared = gb.dumps(gb.GradientBoostingRegressor(n_estimators=2, multi_output="one_tree", device="cpu").fit(x, x))
    found = json.loads(shared)
    assert gb.dumps(gb.loads(shared)) == shared
    for change, words in (
        (put("version", 1), r"trees\[1\]: the entry"),
        (put("trees.1.value.0", 2.0), r"trees\[1\].value\[0\]: it is 0 but at leaves"),
        (put("trees.1.value", [1.0]), r"trees\[1\].value"),
        (put("trees.1.output", 0), r"trees\[1\].output"),
        (put("trees.1.gain", [0.0]), r"trees\[1\]: .*gain"),
        (put("trees.0", found["trees"][1]), r"trees\[0\]: the entry"),
        (put("trees", [found["trees"][0], {**found["trees"][0], "output": 1}]), "version: in files of version 4"),
    ):
        one = json.loads(shared)
        change(one)
        assert re.search(words, refused(json.dumps(one)))


@pytest.mark.parametrize("text", ["", "[]", "null", "3", '"gpuboost"', "{}", '{"format": "xgboost", "version": 1}'])
def test_other_json_is_not_a_model_file(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_beyond_float64(number: str) -> None:
    for old in ('"scale": 1.0', '"learning_rate":0.1', '"value":[0.0'):
        assert old in TEXT
        refused(TEXT.replace(old, old.replace("1.0", number).replace("0.1", number).replace("[0.0", f"[{number}")))


def test_an_entry_named_twice() -> None:
    assert "names each entry once; found 'scale'" in refused(TEXT.replace('"scale": 1.0', '"scale": 1.0, "scale": 1.0'))


def test_an_integer_of_thousands_of_digits() -> None:
    refused(TEXT.replace('"version": 1', '"version": ' + "9" * 5000))
    refused(TEXT.replace('"count":[4', '"count":[' + "4" * 4000))


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting(opening: str) -> None:
    assert "nested" in refused(opening * 200_000)
    assert "nested" in refused(TEXT.replace('"loss": {', '"loss": {"a": ' + "[" * 100_000))


def test_bytes_that_are_not_text() -> None:
    assert "byte 1 is 255" in refused(b"{\xff")
    refused(b"\x80\x04\x95\x10")  # a pickle
    refused(b"\x1f\x8b\x08\x00")  # gzip
    refused(b"\xef\xbb\xbf" + TEXT.encode())  # a byte order mark


def test_every_truncation_is_refused() -> None:
    for end in range(len(TEXT) - 2):
        refused(TEXT[:end])
    file.from_json(TEXT[:-1])  # all but the last line end


@settings(max_examples=examples(300))
@given(st.data())
def test_a_changed_byte_is_refused_or_still_a_valid_model(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(TEXT) - 1))
    text = TEXT[:at] + data.draw(st.sampled_from('0123456789-.,:[]{}" eE\\xtn')) + TEXT[at + 1 :]
    try:
        record = file.from_json(text)
    except InputError:
        return
    again = file.to_json(record.ensemble, record.loss, record.columns, record.parameters, record.extra)
    assert file.to_json(file.from_json(again).ensemble, {}, {}, {}, {}) == file.to_json(record.ensemble, {}, {}, {}, {})
