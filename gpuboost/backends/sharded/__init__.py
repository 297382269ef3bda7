"""Data-parallel training: rows divided among workers, each with a machine of its own, as one machine.

A worker (``shard.Shard``) holds some rows and runs its part of every verb; the driver (``backend.Sharded``) combines
the answers. There are three kinds of answers: integers, whose sum has no order (histograms, sums of leaves, counts);
maxima, which have none either; and float64 sums in the library's fixed order, divided at its own stretches
(``ordered``). So a model does not depend, to the last bit, on the number of shards or on their boundaries.
"""
