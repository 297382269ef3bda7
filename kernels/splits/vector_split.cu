// One tree for several outputs: sums and histograms of every output, the split search, and the division of rows.
// Definition: numerics/one_tree, reference/one_tree. In front: common.cuh, blocks.cuh, tree.cuh.
//
// s outputs are searched. The pair (g, h) of an output is two integers of 32 bits; pairs of OF_GROUP outputs lie side
// by side: pairs[(group * room + row) * OF_GROUP + r] is of output group * OF_GROUP + r. The rows of a node are a
// stretch of one of two lists, and those of its children lie at the same place of the other list, left ones first.
// Grids are of any size: blocks take one unit of work after the other.

enum {
    OF_GROUP = 4,  // outputs whose pairs are read at once
    PART = 4096,   // rows of a unit of work; at most MOST_ROWS, so that 32 bits are enough
    CODES = 256,   // bins of a feature and what is missing
    THREADS = 256  // one for each code
};

// A node and its split. The numpy twin is in gpuboost/backends/cuda/outputs/one_tree.py.
struct VectorNode {
    i32 begin, count, list;                  // its rows: list 0 or 1
    i32 feature, bin, missing_left, all_but; // as numerics.one_tree.VectorSplit
    i32 left;                                // number of its left child; the right one's is one more
};

static_assert(sizeof(VectorNode) == 32, "the numpy twin has this size");

// A feature that competes in a node.
struct VectorLine {
    i32 node, feature;
};

struct Pairs {
    const uint2 *pairs;
    i64 room;

    // g and h of a row's outputs in a group.
    __device__ __forceinline__ void read(i32 group, i32 row, i32 (&g)[OF_GROUP], u32 (&h)[OF_GROUP]) const
    {
        const uint4 *at = (const uint4 *)(pairs + ((i64)group * room + row) * OF_GROUP);
        const uint4 first = at[0], second = at[1];
        g[0] = (i32)first.x, h[0] = first.y, g[1] = (i32)first.z, h[1] = first.w;
        g[2] = (i32)second.x, h[2] = second.y, g[3] = (i32)second.z, h[3] = second.w;
    }
};

// The first m rows: their integers, all in list 0, and in node 0. Grid: (., groups).
extern "C" __global__ void __launch_bounds__(THREADS)
begin_tree(const f32 *g, const f32 *h, const i32 *times, i32 has_times, i32 room, i32 s, const State *states,
           uint2 *pairs, i32 *lists, i32 *leaf_of_row)
{
    const i32 group = blockIdx.y, m = states->m;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
        const i32 own = has_times ? times[i] : 1;
        for (i32 r = 0; r < OF_GROUP; ++r) {
            const i32 output = group * OF_GROUP + r;
            uint2 pair = make_uint2(0, 0);
            if (output < s) {
                const State &state = states[output];
                const i64 at = (i64)output * room + i;
                pair.x = (u32)(i32)quantised(g[at], state.scale_g, own, state.error);
                pair.y = (u32)quantised(h[at], state.scale_h, own, state.error);
            }
            pairs[((i64)group * room + i) * OF_GROUP + r] = pair;
        }
        if (group == 0) {
            lists[i] = i;
            leaf_of_row[i] = 0;
        }
    }
}

// sums[i][output] += g and h of the rows of node i, or where ``divided`` is 1 of its left child, whose rows are counted
// in ``cursors``. parts: of the node of most rows.
extern "C" __global__ void __launch_bounds__(THREADS)
vector_sums(const VectorNode *nodes, i32 n_nodes, i32 parts, const i32 *cursors, i32 divided, const i32 *lists, i32 room,
            const uint2 *pairs, i32 s, u64 *sums)
{
    const Pairs of_rows = {pairs, room};
    const i32 groups = (s + OF_GROUP - 1) / OF_GROUP;
    const i64 units = (i64)n_nodes * groups * parts;
    for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const i32 part = (i32)(unit % parts), group = (i32)(unit / parts % groups), i = (i32)(unit / parts / groups);
        const VectorNode node = nodes[i];
        const i32 count = divided ? cursors[2 * i] : node.count, list = divided ? 1 - node.list : node.list;
        const i32 end = min(part * PART + (i32)PART, count);
        const i32 *rows = lists + (i64)list * room + node.begin;
        u32 sum_g[OF_GROUP] = {}, sum_h[OF_GROUP] = {};
        for (i32 k = part * PART + (i32)threadIdx.x; k < end; k += blockDim.x) {
            i32 g[OF_GROUP];
            u32 h[OF_GROUP];
            of_rows.read(group, rows[k], g, h);
            for (i32 r = 0; r < OF_GROUP; ++r) {
                sum_g[r] += (u32)g[r];
                sum_h[r] += h[r];
            }
        }
        for (i32 r = 0; r < OF_GROUP; ++r) {
            for (i32 d = 16; d; d >>= 1) {
                sum_g[r] += __shfl_xor_sync(FULL_WARP, sum_g[r], d);
                sum_h[r] += __shfl_xor_sync(FULL_WARP, sum_h[r], d);
            }
            const i32 output = group * OF_GROUP + r;
            if (threadIdx.x % 32 == 0 && output < s) {
                u64 *to = sums + 2 * ((i64)i * s + output);
                if (sum_g[r] != 0)
                    atomicAdd(to, (u64)(i64)(i32)sum_g[r]);
                if (sum_h[r] != 0)
                    atomicAdd(to + 1, (u64)sum_h[r]);
            }
        }
    }
}

// histograms[line][output] += g, then h, of each code, for the lines first .. last - 1, whose histograms and counts are 0
// before. Rows are counted where ``counted`` is 1.
extern "C" __global__ void __launch_bounds__(THREADS)
vector_histograms(const VectorNode *nodes, const VectorLine *lines, i32 first, i32 last, i32 parts, const i32 *lists,
                  i32 room, const u8 *columns, const uint2 *pairs, i32 s, i32 counted, u64 *histograms, u32 *counts)
{
    __shared__ u32 near_g[OF_GROUP][CODES], near_h[OF_GROUP][CODES], near_count[CODES];
    const Pairs of_rows = {pairs, room};
    const i32 groups = (s + OF_GROUP - 1) / OF_GROUP, code = threadIdx.x;
    const i64 units = (i64)(last - first) * groups * parts;
    for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const i32 part = (i32)(unit % parts), group = (i32)(unit / parts % groups), place = (i32)(unit / parts / groups);
        const VectorLine line = lines[first + place];
        const VectorNode node = nodes[line.node];
        const i32 end = min(part * PART + (i32)PART, node.count);
        if (part * PART >= end)
            continue;
        for (i32 r = 0; r < OF_GROUP; ++r)
            near_g[r][code] = near_h[r][code] = 0;
        near_count[code] = 0;
        __syncthreads();
        const i32 *rows = lists + (i64)node.list * room + node.begin;
        const u8 *column = columns + (i64)line.feature * room;
        for (i32 k = part * PART + (i32)threadIdx.x; k < end; k += blockDim.x) {
            const i32 row = rows[k], c = column[row];
            i32 g[OF_GROUP];
            u32 h[OF_GROUP];
            of_rows.read(group, row, g, h);
            for (i32 r = 0; r < OF_GROUP; ++r) {
                if (g[r] != 0)
                    atomicAdd(&near_g[r][c], (u32)g[r]);
                if (h[r] != 0)
                    atomicAdd(&near_h[r][c], h[r]);
            }
            if (counted && group == 0)
                atomicAdd(&near_count[c], 1u);
        }
        __syncthreads();
        for (i32 r = 0; r < OF_GROUP && group * OF_GROUP + r < s; ++r) {
            u64 *to = histograms + 2 * CODES * ((i64)place * s + group * OF_GROUP + r) + code;
            if (near_g[r][code] != 0)
                atomicAdd(to, (u64)(i64)(i32)near_g[r][code]);
            if (near_h[r][code] != 0)
                atomicAdd(to + CODES, (u64)near_h[r][code]);
        }
        if (counted && near_count[code] != 0)
            atomicAdd(counts + (i64)place * CODES + code, near_count[code]);
        __syncthreads();
    }
}

// One side of a candidate: the sum over the outputs of G^2 / (H + ridge), and of H.
struct Side {
    f64 score, h;

    __device__ __forceinline__ void add(i64 g, i64 h_units, f64 unit_g, f64 unit_h, f64 ridge)
    {
        const f64 a = (f64)g * unit_g, b = (f64)h_units * unit_h, below = b + ridge;
        h += b;
        if (below > 0.0)
            score += a * a / below;
    }
};

// Limits that a split must satisfy.
struct VectorLimits {
    f64 least_h, threshold, parent;
    i64 least_rows; // 1: not looked at, since a side with curvature has a row
    i32 s;
};

// The gain of a candidate, 0 where it may not be; heavier: the left side has the larger mean H.
static __device__ __forceinline__ f64 gain_of(const Side &left, const Side &right, i64 rows_left, i64 rows_right,
                                              const VectorLimits &limits, bool &heavier)
{
    const f64 h_left = left.h / (f64)limits.s, h_right = right.h / (f64)limits.s;
    heavier = h_left > h_right;
    const bool enough = h_left > 0.0 && h_left >= limits.least_h && h_right > 0.0 && h_right >= limits.least_h;
    const bool rows = limits.least_rows <= 1 || (rows_left >= limits.least_rows && rows_right >= limits.least_rows);
    const f64 gain = left.score + right.score - limits.parent;
    return enough && rows && gain > limits.threshold ? gain : 0.0;
}

// The sum of this thread's values and those of all earlier threads; slot: 0 and 1 in turn, so that one barrier is enough.
static __device__ __forceinline__ void scan(i64 &g, i64 &h, i32 slot)
{
    __shared__ i64 of_warp[2][2][THREADS / 32];
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (i32 d = 1; d < 32; d <<= 1) {
        const i64 before_g = __shfl_up_sync(FULL_WARP, g, d), before_h = __shfl_up_sync(FULL_WARP, h, d);
        if (lane >= d) {
            g += before_g;
            h += before_h;
        }
    }
    if (lane == 31) {
        of_warp[slot][0][warp] = g;
        of_warp[slot][1][warp] = h;
    }
    __syncthreads();
    for (i32 w = 0; w < warp; ++w) {
        g += of_warp[slot][0][w];
        h += of_warp[slot][1][w];
    }
}

// found[line] = gain, bin, whether missing values go left, whether all categories do, for the lines first .. last - 1;
// 0 where there is no split. A thread has the candidate of its code, with missing values on either side.
// totals: (nodes, s, 2); units: (s, 2); noise: the share of a node's score that a gain must exceed.
extern "C" __global__ void __launch_bounds__(THREADS)
vector_search(const VectorNode *nodes, const VectorLine *lines, i32 first, i32 last, const i32 *n_bins,
              const u8 *categorical, const i64 *totals, const f64 *units, i32 s, f64 ridge, f64 least_h, i32 least_rows,
              f64 least_gain, f64 noise, const u64 *histograms, const u32 *counts, f64 *found)
{
    __shared__ i64 missing[2][2];
    __shared__ f64 warp_gain[THREADS / 32];
    __shared__ i32 warp_key[THREADS / 32];
    const i32 c = threadIdx.x;
    for (i32 number = first + blockIdx.x; number < last; number += gridDim.x) {
        const VectorLine line = lines[number];
        const i32 b = n_bins[line.feature];
        const bool sets = categorical[line.feature] != 0;
        const i64 *total = totals + (i64)line.node * s * 2;
        Side left = {}, right = {}, left_with = {}, right_with = {}, whole = {};
        bool is_missing = false;
        for (i32 j = 0; j < s; ++j) {
            const u64 *cells = histograms + 2 * CODES * ((i64)(number - first) * s + j);
            const f64 unit_g = units[2 * j], unit_h = units[2 * j + 1];
            const i64 total_g = total[2 * j], total_h = total[2 * j + 1];
            i64 g = (i64)cells[c], h = (i64)cells[CODES + c];
            if (c == b) {
                missing[j & 1][0] = g;
                missing[j & 1][1] = h;
            }
            if (sets)
                __syncthreads();
            else
                scan(g, h, j & 1);
            const i64 missing_g = missing[j & 1][0], missing_h = missing[j & 1][1];
            is_missing |= missing_g != 0 || missing_h != 0;
            if (sets && c == b) {
                g = total_g - missing_g;
                h = total_h - missing_h;
            }
            whole.add(total_g, total_h, unit_g, unit_h, ridge);
            left.add(g, h, unit_g, unit_h, ridge);
            right.add(total_g - g, total_h - h, unit_g, unit_h, ridge);
            g += missing_g;
            h += missing_h;
            left_with.add(g, h, unit_g, unit_h, ridge);
            right_with.add(total_g - g, total_h - h, unit_g, unit_h, ridge);
        }
        const i64 rows = nodes[line.node].count;
        i64 rows_left = 0, rows_missing = 0;
        if (least_rows > 1) {
            const u32 *own = counts + (i64)(number - first) * CODES;
            u32 every;
            const u32 before = block_scan(own[c], every);
            rows_missing = own[b];
            rows_left = !sets ? (i64)before + own[c] : c == b ? rows - rows_missing : (i64)own[c];
            is_missing |= rows_missing > 0;
        }
        const f64 least = noise * whole.score;
        const VectorLimits limits = {least_h, least > least_gain ? least : least_gain, whole.score, least_rows, s};
        bool heavier, ignored;
        f64 gain = gain_of(left, right, rows_left, rows - rows_left, limits, heavier);
        const f64 with = gain_of(left_with, right_with, rows_left + rows_missing, rows - rows_left - rows_missing,
                                 limits, ignored);
        if (!(sets ? c < b || (c == b && is_missing) : c < b - 1 || (c == b - 1 && is_missing)))
            gain = 0.0;
        i32 key = gain > 0.0 ? 2 * c : NO_KEY;
        if (!sets && is_missing && c < b - 1 && with > gain) {
            gain = with;
            key = 2 * c + 1;
        }
        const i32 own_key = key;
        best_lane(gain, key);
        if (threadIdx.x % 32 == 0) {
            warp_gain[threadIdx.x / 32] = gain;
            warp_key[threadIdx.x / 32] = key;
        }
        __syncthreads();
        for (i32 w = 0; w < THREADS / 32; ++w) // codes rise with the warps
            if (w == 0 || warp_gain[w] > gain) {
                gain = warp_gain[w];
                key = warp_key[w];
            }
        f64 *to = found + 4 * (i64)number;
        if (key == NO_KEY ? threadIdx.x == 0 : own_key == key) {
            const bool any = key != NO_KEY;
            to[0] = gain;
            to[1] = any ? (f64)c : 0.0;
            to[2] = any && ((key & 1) || (heavier && !is_missing)) ? 1.0 : 0.0;
            to[3] = any && sets && c == b ? 1.0 : 0.0;
        }
        __syncthreads();
    }
}

// The rows of each node to its children. cursors: rows of the left and of the right child, 0 before.
extern "C" __global__ void __launch_bounds__(THREADS)
divide_rows(const VectorNode *nodes, i32 n_nodes, i32 parts, const i32 *n_bins, const u8 *categorical, const u8 *columns,
            i32 room, i32 *lists, i32 *cursors, i32 *leaf_of_row)
{
    __shared__ i32 begin_left, begin_right;
    const i64 units = (i64)n_nodes * parts;
    for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const i32 part = (i32)(unit % parts), i = (i32)(unit / parts);
        const VectorNode node = nodes[i];
        const i32 end = min(part * PART + (i32)PART, node.count), missing = n_bins[node.feature];
        const bool sets = categorical[node.feature] != 0;
        const u8 *column = columns + (i64)node.feature * room;
        const i32 *rows = lists + (i64)node.list * room + node.begin;
        i32 *to = lists + (i64)(1 - node.list) * room + node.begin;
        for (i32 k = part * PART; k < end; k += THREADS) {
            const i32 here = min((i32)THREADS, end - k);
            const bool there = (i32)threadIdx.x < here;
            const i32 row = there ? rows[k + threadIdx.x] : 0, code = there ? column[row] : 0;
            bool left = sets ? node.all_but || code == node.bin : code <= node.bin;
            left = there && (code == missing ? node.missing_left != 0 : left);
            u32 of_left;
            const i32 rank = (i32)block_scan((u32)left, of_left);
            if (threadIdx.x == 0) {
                begin_left = atomicAdd(cursors + 2 * i, (i32)of_left);
                begin_right = atomicAdd(cursors + 2 * i + 1, here - (i32)of_left);
            }
            __syncthreads();
            if (there) {
                const i32 from_end = begin_right + (i32)threadIdx.x - rank;
                to[left ? begin_left + rank : node.count - 1 - from_end] = row;
                leaf_of_row[row] = node.left + (left ? 0 : 1);
            }
        }
    }
}

// The finished tree, once for each output: its nodes, and their number in the state. Grid: (., outputs).
extern "C" __global__ void __launch_bounds__(THREADS)
finish_outputs(const Node *tree, i32 n_nodes, i32 capacity, Node *nodes, State *states)
{
    const i32 output = blockIdx.y;
    for (i32 v = blockIdx.x * blockDim.x + threadIdx.x; v < n_nodes; v += gridDim.x * blockDim.x)
        nodes[(i64)output * capacity + v] = tree[v];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        states[output].n_nodes = n_nodes;
        states[output].n_leaves = (n_nodes + 1) / 2;
    }
}

// Sums of the target's own rows, for leaf values: of each leaf and output, 0 before. Grid: (., outputs).
extern "C" __global__ void __launch_bounds__(THREADS)
own_leaf_sums(const f32 *g, const f32 *h, const i32 *times, i32 has_times, i32 room, const State *states,
              const i32 *leaf_of_row, i32 capacity, Node *nodes)
{
    const i32 output = blockIdx.y;
    const State &state = states[output];
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < state.m; i += gridDim.x * blockDim.x) {
        const i64 at = (i64)output * room + i;
        const i32 own = has_times ? times[i] : 1;
        Node &leaf = nodes[(i64)output * capacity + leaf_of_row[i]];
        atomicAdd((u64 *)&leaf.sum_g, (u64)quantised(g[at], state.scale_g, own, state.error));
        atomicAdd((u64 *)&leaf.sum_h, (u64)quantised(h[at], state.scale_h, own, state.error));
    }
}
