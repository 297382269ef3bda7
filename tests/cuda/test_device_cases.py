"""The cases that compute-sanitizer watches on a real GPU (``tests/device``) run, on the emulated one."""

from __future__ import annotations

import pytest
from device.small_cases import FEATURES, PARTS, main
from emulator import emulated_gpu


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:variance_control")
def test_the_cases_of_few_features_run() -> None:
    with emulated_gpu():
        main(range(PARTS // len(FEATURES)))
