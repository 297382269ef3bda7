"""Gradients with those of an earlier round as a control variate. Definition: reference.sampling.

The first two functions are the arithmetic of one row: numba compiles them for CPUs, and numba.cuda links them into
``control_variates.cu``.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.sampling.probability import weighted


@kernel
@inlined
def node_gradient(now, old, share, eta):
    """q / p (g - g') + eta g'. share: q / p, q being 1 of drawn rows and 0 of others."""
    return weighted(now - old, share) + eta * old


@kernel
@inlined
def leaf_gradient(now, old, mean, share, eta):
    """(g - g' + eta mean) / p. share: 1 / p."""
    return weighted(now - old + eta * mean, share)


@kernel
def node_control_variate(g, h, old_g, share, eta, start, stop, made_g, made_h):
    """made_g, made_h = ``node_gradient`` and q / p h of rows [start, stop).

    g, h, old_g, made_g, made_h (k, n) float32; share (n,) float64.
    """
    share = share[start:stop]
    for c in range(g.shape[0]):
        now, curvature, old = g[c, start:stop], h[c, start:stop], old_g[c, start:stop]
        out_g, out_h = made_g[c, start:stop], made_h[c, start:stop]
        for i in range(share.size):
            out_g[i] = np.float32(node_gradient(np.float64(now[i]), np.float64(old[i]), share[i], eta))
            out_h[i] = np.float32(weighted(np.float64(curvature[i]), share[i]))


@kernel
def horvitz_thompson(g, share, start, stop, made_g):
    """made_g = q / p g of rows [start, stop). g, made_g (k, n) float32; share (n,) float64."""
    share = share[start:stop]
    for c in range(g.shape[0]):
        now, out = g[c, start:stop], made_g[c, start:stop]
        for i in range(share.size):
            out[i] = np.float32(weighted(np.float64(now[i]), share[i]))


@kernel
def leaf_control_variate(g, h, old_g, means, rows, share, eta, start, stop, made_g, made_h):
    """made_g, made_h = ``leaf_gradient`` and h / p of drawn rows [start, stop).

    g, h, old_g (k, n) float32; means (k, n) float64; rows (m,) int32; share (m,) float32; made_g, made_h (k, m).
    """
    for c in range(g.shape[0]):
        now, curvature, old, mean, out_g, out_h = g[c], h[c], old_g[c], means[c], made_g[c], made_h[c]
        for j in range(start, stop):
            i, by = np.uint64(rows[j]), np.float64(share[j])
            out_g[j] = np.float32(leaf_gradient(np.float64(now[i]), np.float64(old[i]), mean[i], by, eta))
            out_h[j] = np.float32(weighted(np.float64(curvature[i]), by))
