"""The table of a growing tree: one row of int64 per node. Column numbers, shared by all kernels that read it."""

BEGIN, END = 0, 1  # the node's rows are rows[BEGIN:END]
DEPTH = 2
LEFT, RIGHT = 3, 4  # 0 at a leaf
FEATURE, BIN, MISSING_LEFT = 5, 6, 7  # the best split found; FEATURE is -1 if there is none
SUM_G, SUM_H = 8, 9  # exact sums, in units of the fixed point
LEFT_G, LEFT_H = 10, 11  # of the left child under the best split
SLOT = 12  # where its histogram is, -1 if it has none
STATE = 13
COLUMNS = 14

NEW, OPEN, SPLIT, CLOSED = 0, 1, 2, 3  # no split sought yet, split found, split made, cannot be split
