// Records of a growing tree on a device. The numpy twins are in gpuboost/backends/cuda/trees/tree.py.

// One output's target and the tree being grown from it. Written by the kernels of the target (scales, weight, m) and by
// those of growth (sums and counts); the host never waits for it inside a round.
struct State {
    f64 scale_g, scale_h;   // target: powers of two; q = rint(x * scale), times the multiplicity
    f64 unit_g, unit_h;     // target: 1 / scale
    f64 rows_per_h;         // growth: weight / max(total_h, 1)
    i64 weight;             // target: rows that the gradients stand for, the sum of the multiplicities
    i64 total_g, total_h;   // growth: exact sums over the target's rows
    i32 m;                  // target: rows of the target
    i32 wide;               // target: 1 if a pair (g, h) takes 2 x 32 bits, 0 if 2 x 16
    i32 error;              // target: 1 if a gradient was not finite; the tree is then a single leaf of sums 0
    i32 n_nodes, n_leaves;  // growth
    i32 level_begin;        // growth: nodes level_begin .. n_nodes - 1 are those of the last level made
    i32 n_lines;            // growth: children whose rows are counted in this step
    i32 finished;           // growth: 1 when nothing is left to split
    u32 iteration;          // round: counts up, for random streams and tree slots
    u32 arrived;            // growth: counter of last_block
    i32 n_made;             // leaf-wise growth: splits of the finished tree that are known
    i32 spare;
};

enum NodeState { NEW = 0, OPEN = 1, SPLIT = 2, CLOSED = 3 }; // no split sought yet, found, made, cannot be split

// As types.Nodes, where ``cover`` is sum_h * unit_h. Children come in pairs: right == left + 1. When a tree is finished,
// what was found but not made is wiped out: feature is -1 and all of a split is 0 at leaves.
struct Node {
    i64 sum_g, sum_h;       // exact
    i64 left_g, left_h;     // of the left child under the split
    f64 gain;
    f64 value;              // leaves: written by the kernels of leaf values
    i32 feature, bin, missing_left;
    i32 left, right;        // 0 at a leaf
    i32 count;              // rows
    i32 depth, state;
    i32 slot;               // of its rows (``slot_of_row``) and of its histogram, while it is a leaf
    i32 parent;             // -1 for the root
    i32 place, made;        // leaf-wise growth: number in the finished tree, or -1; 1 if its split is part of it
    u32 left_set[8];        // bins that go left, without what is missing; zeros if numeric
};

// A child whose rows are counted, and listed if its histogram is to be built, while its parent's rows are routed.
struct Line {
    i32 node, sibling;      // sibling: -1 where both children are built
    i32 begin, step;        // its k-th row is at list[begin + step * k]
    i32 listed;
    u32 first;              // work on the lines before it: see LINE_WORK
    i32 rows, spare;        // its listed rows
};

// Split of the rows of a slot. feature is -1 where they stay.
struct alignas(16) Route {
    i32 feature;
    u32 rule;               // bin | missing code << 8 | flags
    i32 slot;               // where the rows of the side that moves go
    i32 line;               // of the side that is counted; the right side's is one more where both are
};

enum RouteFlags {
    MISSING_LEFT = 1 << 16, CATEGORICAL = 1 << 17, COUNT_LEFT = 1 << 18, COUNT_RIGHT = 1 << 19, MOVE_LEFT = 1 << 20
};

// The further limits of splits of categorical features: types.CategoryLimits.
struct CategoryLimits {
    f64 smoothing, reg_lambda, min_category_rows, min_group_rows;
};

// The limits of a tree: types.Limits.
struct Rule {
    f64 reg_lambda, min_child_weight, min_split_gain;
    CategoryLimits categories;
    f64 reg_alpha, max_delta_step; // the second infinite where values are not clipped
    f64 path_smooth;
    i32 max_leaves, max_depth, min_samples_leaf, symmetric;
    i32 one_value;          // of a stump: types.Limits.signed
    i32 draws;              // how features are drawn: see Draws
    i32 most_splits;        // nodes that a pass of leaf-wise growth splits at most
    i32 spare;
};

// What draws features: the tree, each node by its number (so leaf-wise growth makes one split at a time), or each level.
enum Draws { OF_TREE, OF_NODES, OF_LEVELS };

static_assert(sizeof(State) == 112 && sizeof(Node) == 128 && sizeof(Line) == 32, "the numpy twins have these sizes");

#define MOST_ROWS 65535 // whose pairs may be added up in 32 bits, whatever the scale: see backends/numerics/fixed_point.py

// g or h of one row as an integer; 0 where the scale means nothing.
static __device__ __forceinline__ i64 quantised(f32 x, f64 scale, i32 times, i32 error)
{
    return error ? 0 : __double2ll_rn(widened(__float_as_uint(x)) * scale) * times;
}

// A pair as it lies in memory: one u32, h below and g above, or two.
static __device__ __forceinline__ void read_pair(const u32 *pairs, i32 wide, i32 at, i32 &g, u32 &h)
{
    if (wide) {
        const uint2 pair = ((const uint2 *)pairs)[at];
        g = (i32)pair.x;
        h = pair.y;
    } else {
        const u32 pair = pairs[at];
        g = (i32)pair >> 16;
        h = pair & 0xffffu;
    }
}

static __device__ __forceinline__ void write_pair(u32 *pairs, i32 wide, i32 at, i32 g, u32 h)
{
    if (wide)
        ((uint2 *)pairs)[at] = make_uint2((u32)g, h);
    else
        pairs[at] = (u32)g << 16 | h;
}

// True if the cells of a histogram of so many rows are added up as one number, g << 32 plus h: both have 32 bits. Not
// where devices add up each other's sums.
static __device__ __forceinline__ bool is_packed(i32 rows) { return !SHARDED && rows <= MOST_ROWS; }

enum { LINE_WORK = 1024 }; // to begin and to end a histogram takes as long as this many rows

// Work on a line whose histogram is built.
static __device__ __forceinline__ u32 work_of(i32 rows) { return rows > 0 ? (u32)rows + LINE_WORK : 0; }

// A block's share, when work on ``rows`` rows of each of ``across`` tiles of features is shared out to the grid.
static __device__ __forceinline__ i64 rows_of_share(i64 rows, i32 across, i32 least)
{
    const i64 even = ((rows * across + gridDim.x - 1) / gridDim.x + 31) / 32 * 32; // whole warps
    return even < least ? least : even;
}

// Blocks that have a share, at least one.
static __device__ __forceinline__ i32 blocks_of_shares(i64 rows, i64 share)
{
    return max(1, (i32)((rows + share - 1) / share));
}

// G brought nearer to 0 by alpha, and 0 if it is not further from it.
static __device__ __forceinline__ f64 soft_threshold(f64 g, f64 alpha)
{
    return g > alpha ? g - alpha : g < -alpha ? g + alpha : 0.0;
}

// True if the node's sums allow a split.
static __device__ __forceinline__ bool can_split(const Node &node, f64 unit_h, const Rule *rule)
{
    return node.depth < rule->max_depth && node.sum_h > 0
        && (f64)node.sum_h * unit_h >= 2.0 * rule->min_child_weight;
}

// The same for its rows, once they are counted. A row may stand for several, and where rows are not counted a level of
// a symmetric tree must not depend on which way it does.
static __device__ __forceinline__ bool enough_rows(const Node &node, const Rule *rule)
{
    return (rule->symmetric && rule->min_samples_leaf == 1) || node.count >= 2 * rule->min_samples_leaf;
}

// The node stays a leaf: what was found is wiped out.
static __device__ __forceinline__ void wipe(Node &node)
{
    node.state = CLOSED;
    node.feature = -1;
    node.bin = node.missing_left = 0;
    node.left_g = node.left_h = 0;
    node.gain = 0.0;
    for (i32 w = 0; w < 8; ++w)
        node.left_set[w] = 0;
}
