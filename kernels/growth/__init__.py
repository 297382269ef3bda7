"""Tree growth: node selection, partition of rows, fused kernels for small trees and stumps."""
