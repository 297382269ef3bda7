"""Rows shared out to workers, each with a machine of its own; together they are one machine, to the last bit.

A worker (``shard.Shard``) holds some rows and does what a verb asks of them; the driver (``backend.Sharded``) puts the
answers together. Only three kinds of answer cross between them: integers, whose sum has no order (histograms, sums of
leaves, counts); maxima, which have none either; and sums of float64 numbers in the library's fixed order, which are
cut at its own joints (``ordered``). So one shard or a hundred, and a boundary anywhere, leave no trace in a model.
"""
