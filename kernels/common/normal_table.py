"""The table behind Gaussian numbers: read from normal_table.cuh, and how that was made.

``python -m gpuboost.kernels.common.normal_table`` makes it anew (needs scipy, and only then).

The committed file is the definition; another scipy or LAPACK may move its last bits. A segment is a binary order of
u = 2 m + 1, m being 31 random bits, cut in eight; in each, a polynomial of degree 5 follows z = -ndtri(u / 2**33).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

PLACE = Path(__file__).with_name("normal_table.cuh")
ORDERS, PARTS, DEGREE, NODES = 32, 8, 5, 64

HEAD = """\
/* Coefficients c0 .. c5 of the normal quantile, one line a segment, row = 8 * floor(log2 u) + the next three bits of u.
   Made by normal_table.py, read by normal.py and by the kernels that draw Gaussian numbers. Not to be edited. */
"""


def read():
    """(256, 6) float64: the rows between the braces of the file, which C includes as it is."""
    lines = PLACE.read_text().splitlines()
    rows = [line.strip("{},").split(",") for line in lines if line.startswith("{")]
    return np.array([[float.fromhex(c) for c in row] for row in rows])


def coefficients():
    """(256, 6) float64: the polynomial of each segment in t, its place there, from 0 to 1."""
    from scipy.special import ndtri

    places = (np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES) + 1.0) / 2.0
    table = np.zeros((ORDERS * PARTS, DEGREE + 1))
    for order in range(ORDERS):
        for part in range(PARTS):
            start = (1.0 + part / PARTS) * 2.0**order
            if order <= 3:  # u is the start itself, or nothing
                table[order * PARTS + part, 0] = -ndtri(start / 2.0**33)
                continue
            z = -ndtri((start + places * 2.0**order / PARTS) / 2.0**33)
            fitted = np.polynomial.Chebyshev.fit(places, z, DEGREE, domain=[0.0, 1.0])
            table[order * PARTS + part] = fitted.convert(kind=np.polynomial.Polynomial).coef
    return table


def text(table):
    """The file that ``read`` reads: HEAD, then a line for each segment, in hexadecimal, which keeps every bit."""
    lines = ["{" + ",".join(float(c).hex() for c in row) + "}" for row in table]
    return HEAD + ",\n".join(lines) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text(coefficients()))
else:
    TABLE = read()
    """Handed to kernels as an argument, so that a kernel cached on disk holds no copy of it."""
