"""``__getattr__`` of a pandas frame, which may swallow an interrupt, is not called to find out what X is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import gpuboost as gb
from gpuboost.data.frames import collected


class Frame(pd.DataFrame):
    """A frame that notes the attributes which it does not have and is asked for."""

    asked: list[str] = []  # noqa: RUF012 - of the class, since pandas turns attributes of frames into columns

    def __getattr__(self, name: str) -> Any:
        Frame.asked.append(name)
        return super().__getattr__(name)


def test_a_frame_is_recognised_by_its_type() -> None:
    frame = Frame({"a": np.arange(9.0), "b": np.arange(9)})
    Frame.asked.clear()
    assert collected(frame) is frame
    gb.Dataset(frame)
    assert not set(Frame.asked) & {"__cuda_array_interface__", "collect", "fetch_arrow_table", "to_pandas"}
