// Split search for symmetric trees: one split for all nodes of a level. Definition: reference.splits.shared_splits.
//
// The candidates are those of the level's summed histogram; what one gains is the sum over the nodes, in their order.
// One block to a feature: its warps take the nodes in turn and leave what every candidate gains there in a line of
// shared memory, and the lines are added up in the order of the nodes.
//
// Compiled as split.cu.

// Histograms of lines first_line .. last_line - 1, one warp to a child and feature. All of them are kept, and the sums of
// the lines become 0.
extern "C" __global__ void __launch_bounds__(THREADS)
complete_histograms(i64 *line_sums, longlong2 *sums, i32 *counts, const i32 *__restrict__ selection,
                    const i32 *__restrict__ features, const i32 *__restrict__ places, const i32 *__restrict__ kinds, const State *__restrict__ state,
                    const Node *__restrict__ nodes, const Line *__restrict__ lines, i32 first_line, i32 last_line)
{
    const i32 t = selection[0], stop = min(last_line, state->n_lines);
    const Store at = {line_sums, sums, counts, selection[1] * selection[2]};
    const WarpPairs pairs = pairs_for(first_line, stop, t);
    __shared__ Room rooms[WARPS];
    for (i32 first = pairs.first; first < pairs.jobs; first += pairs.step) {
        const i32 job = first + (threadIdx.x >> 5) / pairs.apart, part = (threadIdx.x >> 5) % pairs.apart;
        const bool some = job < pairs.jobs;
        const i32 which = some ? job / t : 0, j = some ? job % t : 0;
        const Line line = lines[first_line + which];
        const bool built = some && nodes[line.node].state == NEW;
        const bool other = some && line.sibling >= 0 && nodes[line.sibling].state == NEW;
        const i32 slot = part == 0 && built ? nodes[line.node].slot : part == 1 && other ? nodes[line.sibling].slot : -1;
        Cells cells;
        complete(cells, rooms, at, some && line.listed ? which : -1, part, slot, places[j],
                 (kinds[features[j]] & 0xffff) + 1, is_packed(line.rows), true);
        __syncthreads();
    }
}

// Gain of each candidate at node v. By one warp.
static __device__ void gains_at(const Node &node, const Level &level, const Ends *ends, i32 size, const Store &at,
                                i32 place, i32 kind, const Terms &terms, f64 *gains)
{
    Cells cells;
    load_node(cells, at, node, place, (kind & 0xffff) + 1);
#if SETS
    const i64 own = (i64)node.slot * at.columns * CELLS + (i64)place * CELLS;
    if (level.many)
        gains_of_sets(at.sums + own, at.counts + own * COUNTS, *ends, size, terms, gains);
    else if (kind >> 16)
        gains_of_single(cells, level, terms, gains);
    else
#endif
        gains_of_cuts(cells, terms, gains);
}

// The first of the largest gains over the block, where it is above that of NO_KEY; in all threads.
static __device__ void best_of_block(f64 &gain, i32 &key)
{
    __shared__ f64 gain_of_warp[WARPS];
    __shared__ i32 key_of_warp[WARPS];
    best_lane(gain, key);
    if ((threadIdx.x & 31) == 0) {
        gain_of_warp[threadIdx.x >> 5] = gain;
        key_of_warp[threadIdx.x >> 5] = key;
    }
    __syncthreads();
    for (i32 w = 0; w < WARPS; ++w)
        if (gain_of_warp[w] > gain || (gain_of_warp[w] == gain && key_of_warp[w] < key)) {
            gain = gain_of_warp[w];
            key = key_of_warp[w];
        }
    __syncthreads();
}

// The best candidate of one feature, by the block that has summed the level. found.g is 1 where categories are many.
static __device__ void search_level(Level &level, Ends *ends, f64 *gains, const Store &at, const Node *nodes, i32 begin,
                                    i32 end, i32 place, i32 kind, const Values &values, Candidate *candidate)
{
    __shared__ i32 size;
    const State *state = values.state;
    const Rule *rule = values.rule;
    const i32 warp = threadIdx.x >> 5, missing = kind & 0xffff;
    const Terms terms = terms_of_level(level, state, rule, missing);
    if (warp == 0) {
        const f64 parent = score_level(nodes, begin, end, terms, values);
#if SETS
        const i32 bins = level.many ? sort_level(level, *ends, terms, rule->categories) : 0;
#else
        const i32 bins = 0;
#endif
        if (threadIdx.x == 0) {
            level.parent = parent;
            size = bins;
        }
#if EXTRA_TREES
        draw_cut(level, kind, bins);
#endif
    }
    __syncthreads();
    f64 sum[EACH] = {};
    for (i32 first = begin; first < end; first += WARPS) {
        if (first + warp < end && nodes[first + warp].state == NEW)
            gains_at(nodes[first + warp], level, ends, size, at, place, kind,
                     terms_at(terms, nodes, first + warp, values), gains + warp * CANDIDATES);
        __syncthreads();
        for (i32 w = 0; w < WARPS && first + w < end; ++w)
            if (nodes[first + w].state == NEW)
#pragma unroll
                for (i32 i = 0; i < EACH; ++i)
                    sum[i] += gains[w * CANDIDATES + (i * THREADS + threadIdx.x) % CANDIDATES];
        __syncthreads();
    }
    f64 gain = least_above(level.parent, terms);
    i32 key = NO_KEY;
#pragma unroll
    for (i32 i = 0; i < EACH; ++i) {
        const i32 one = i * THREADS + threadIdx.x;
        if (one < CANDIDATES && competes(level, one, kind) && drawn(level, one, kind) && sum[i] > gain) {
            gain = sum[i];
            key = one;
        }
    }
    best_of_block(gain, key);
    if (threadIdx.x)
        return;
    candidate->found = {0.0, level.many, 0, 0, 0};
    if (key == NO_KEY)
        return;
    const Sums lost = level_cell(level, missing);
    const bool cut = !(kind >> 16), with_missing = cut && key & 1;
    const i64 left = describe(level, ends, key, kind, candidate->left_set) + (with_missing ? lost.h : 0);
    candidate->found = {gain, level.many, 0, cut ? key / 2 : 0,
                        seen(lost) ? with_missing : left > level.total.h - left};
}

// The level's split at each of its nodes, or none. By one block, a warp to a node.
static __device__ void share_split(const Candidate *candidates, i32 t, const i32 *features, const i32 *places,
                                   const i32 *kinds, const Store &at, Node *nodes, i32 begin, i32 end,
                                   const Values &values, Bounds *bounds, const GainNoise &noise)
{
    const State *state = values.state;
    const Rule *rule = values.rule;
    const i32 lane = threadIdx.x & 31;
    f64 gain = 0.0;
    const i32 depth = begin < end ? nodes[begin].depth : 0; // a finished tree has no level, and may have no such node
    const i32 key = feature_of(candidates, features, t, number_of(depth, 0), noise, gain);
    for (i32 v = begin + (threadIdx.x >> 5); v < end; v += WARPS) {
        Node &node = nodes[v];
        if (node.state != NEW)
            continue;
        if (key == NO_KEY) {
            __syncwarp(); // all lanes have read the state
            if (lane == 0)
                node.state = CLOSED;
            continue;
        }
        const Candidate &best = candidates[key];
        const i32 kind = kinds[features[key]], missing = kind & 0xffff;
        Terms terms = terms_at(terms_of(node, state, rule, missing), nodes, v, values);
#if SMOOTHED
        if (lane == 0)
            bounds[v] = terms.within;
#endif
        if (best.found.g)
            terms.ridge += rule->categories.reg_lambda;
        Cells cells;
        load_node(cells, at, node, places[key], missing + 1);
        Sums own = {0, 0, 0};
#pragma unroll
        for (i32 k = 0; k < PER_LANE; ++k) {
            const i32 bin = lane * PER_LANE + k;
            const bool goes = bin == missing ? best.found.missing_left
                : kind >> 16                 ? bin < missing && best.left_set[bin >> 5] >> (bin & 31) & 1
                                             : bin <= best.found.bin;
            if (goes)
                own = own + cell(cells, k);
        }
        const Sums left = from_lane(before_lane(own) + own, 31);
        const f64 here = gain_here(left, terms, score(terms.total, terms));
        __syncwarp();
        if (lane < 8)
            node.left_set[lane] = kind >> 16 ? best.left_set[lane] : 0;
        if (lane == 0) {
            node.gain = here;
            node.left_g = left.g;
            node.left_h = left.h;
            node.feature = features[key];
            node.bin = best.found.bin;
            node.missing_left = best.found.missing_left;
            node.state = OPEN;
        }
    }
    __syncthreads();
}

// Further parameters for path smoothing: as those of ``evaluate`` where leaf values have bounds.
#if SMOOTHED
#define NODE_VALUES , Bounds *bounds, const i32 *__restrict__ directions
#else
#define NODE_VALUES
#endif

// chosen: a bit for each candidate feature that competes in a level, ``words`` words to a level; 0: all do.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
evaluate_level(longlong2 *sums, i32 *counts, const i32 *__restrict__ selection, const i32 *__restrict__ features, const i32 *__restrict__ places,
               const i32 *__restrict__ kinds, Candidate *candidates, State *state, Node *nodes, Line *lines,
               Route *routes, u32 *cursor, i32 *node_of_slot, const Rule *rule, i32 slots, f64 deviation,
               u32 seed_low, u32 seed_high, const u32 *iteration, u32 name, const f64 *table,
               const u32 *__restrict__ chosen, i32 words NODE_VALUES PATHS CUTS ROWS_HERE)
{
#if !SMOOTHED
    Bounds *bounds = nullptr;
    const i32 *directions = nullptr;
#endif
    const Values values = {bounds, directions, state, rule};
    const GainNoise noise = {deviation, {seed_low, seed_high, *iteration, name}, table};
    __shared__ Level level;
    __shared__ f64 gains[WARPS * CANDIDATES];
#if SETS
    __shared__ Ends all_ends;
    Ends *ends = &all_ends;
#else
    Ends *ends = nullptr;
#endif
    const i32 t = selection[0], begin = state->level_begin, end = state->n_nodes;
    const Store at = {nullptr, sums, counts, selection[1] * selection[2]};
    for (i32 j = blockIdx.x; j < t; j += gridDim.x) {
        const i32 kind = kinds[features[j]];
        bool may = begin < end;
        if (may && words)
            may = chosen[(i64)nodes[begin].depth * words + (j >> 5)] >> (j & 31) & 1;
#if INTERACTIONS // all nodes of the level have one path
        may = may && may_follow(nodes, begin, features[j], column_of, sets, set_words, most_columns);
#endif
        if (!may) {
            if (threadIdx.x == 0)
                candidates[j].found.gain = 0.0;
            continue;
        }
#if EXTRA_TREES
        const Stream of_cuts = {cut_seed_low, cut_seed_high, *cut_iteration, cut_name};
        if (threadIdx.x == 0)
            level.word = philox(of_cuts, block_of(number_of(nodes[begin].depth, 0), features[j])).x;
#endif
        sum_level(level, at, nodes, begin, end, places[j], kind);
        search_level(level, ends, gains, at, nodes, begin, end, places[j], kind, values, candidates + j);
        __syncthreads();
    }
    if (last_block(&state->arrived)) {
        share_split(candidates, t, features, places, kinds, at, nodes, begin, end, values, bounds, noise);
        choose_level(state, nodes, {kinds, rule, lines, cursor, routes, node_of_slot, state->unit_h, slots, HERE});
    }
}
