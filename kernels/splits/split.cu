// Split search: complete the histograms of the last level's children and find the best split of each. Two groups of
// threads per line and feature (warp_pairs.cuh), of which one searches the child's cells and one its sibling's; the last
// group of a node takes the best feature, the last block of all chooses the nodes to split.
//
// Compiled for one CELLS and COUNTS (as histogram.cu), SETS (1: some feature is categorical) and GROUP.

// Further parameters where leaf values have bounds.
#if BOUNDED
#define WITHIN , Bounds *bounds, const i32 *__restrict__ directions
#else
#define WITHIN
#endif

// True in the warp that is the last of ``n`` to come here, one of each group; what the others wrote before is then visible to it.
static __device__ __forceinline__ bool last_warp(u32 *counter, i32 n)
{
    u32 arrived = 0;
    __syncwarp();
    if ((threadIdx.x & 31) == 0) {
        __threadfence();
        arrived = atomicInc(counter, n - 1);
    }
    const bool last = __shfl_sync(FULL_WARP, arrived, 0) == (u32)(n - 1);
    if (last)
        __threadfence();
    return last;
}

#if SETS
// The best split of a categorical feature; its set goes to ``candidate``.
static __device__ __forceinline__ Found best_set(const Cells &cells, const Terms &terms, const u32 *bits,
                                                 const CategoryLimits &limits, Ends &own, Candidate *candidate)
{
    const i32 lane = threadIdx.x & 31;
    Found found = search_sets(cells, terms, limits, own);
    u32 some = 0;
    for (i32 w = 0; bits && w < 8; ++w)
        some |= bits[w];
    if (bits && !some)
        found.gain = 0.0;
    if (lane < 8)
        candidate->left_set[lane] = own.set[lane];
    return found;
}
#endif

// Blocks that a multiprocessor should hold: with more, these variants would spill registers.
#if SETS && (BOUNDED || CELLS == 256)
#define BLOCKS 1
#elif EXTRA_TREES && CELLS == 256 && (COUNTS || SETS)
#define BLOCKS 1
#elif GROUP == 32 || BOUNDED || COUNTS
#define BLOCKS 2
#else
#define BLOCKS 3
#endif

// Lines first_line .. last_line - 1, each of a child that was built and, if it has one, its sibling. slots: histograms
// are kept of nodes in slots below this. choose: after these lines, splits are chosen; 1: of the level, 2: best first.
// kinds: value bins of every feature, and 1 << 16 if it is categorical. places: where each candidate feature's first
// cell is among those of a histogram, in units of CELLS. deviation and what follows: GainNoise (random_strength.cuh).
// selection[3]: where 8 words for each candidate feature tell by which cuts the root may be split, 0 for all.
// line_sums: of the lines, in order; with shards, of the rows of all of them. They become 0. A last argument of shards
// tells the rows that are here.
// chosen: a bit for each candidate feature that competes in a node, ``words`` words to a node, or to a level
// (feature_subsets.cu); 0: all do.
// Where leaf values have bounds, bounds are those of every node that was searched, and directions those of all features.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
evaluate(i64 *line_sums, longlong2 *sums, i32 *counts, const i32 *__restrict__ selection, const i32 *__restrict__ features, const i32 *__restrict__ places,
         const i32 *__restrict__ kinds, Candidate *candidates, u32 *arrived, State *state, Node *nodes, Line *lines,
         Route *routes, u32 *cursor, i32 *node_of_slot, const Rule *rule, i32 first_line, i32 last_line, i32 slots,
         i32 choose, f64 deviation, u32 seed_low, u32 seed_high, const u32 *iteration, u32 name, const f64 *table,
         const u32 *__restrict__ chosen, i32 words WITHIN PATHS CUTS ROWS_HERE)
{
    if (choose == 2 && state->n_lines == 0) // leaf-wise growth has ended
        return;
    const GainNoise noise = {deviation, {seed_low, seed_high, *iteration, name}, table};
    __shared__ Room rooms[GROUPS];
    __shared__ Told told;
#if GROUP > 32
    __shared__ Terms terms_of_group[GROUPS];
#endif
#if SETS
    __shared__ CategoryLimits limits; // in shared memory, as there is no register left for them
    if (threadIdx.x == 0)
        limits = rule->categories;
    __syncthreads();
#endif
    const i32 t = selection[0], root_cuts = selection[3], draws = rule->draws;
    const i32 lane = threadIdx.x % GROUP, group = threadIdx.x / GROUP;
    const i32 stop = min(last_line, state->n_lines);
    const Store at = {line_sums, sums, counts, selection[1] * selection[2]};
    const WarpPairs pairs = pairs_for(first_line, stop, t);
    for (i32 first = pairs.first; first < pairs.jobs; first += pairs.step) {
        const i32 job = first + group / pairs.apart, part = group % pairs.apart;
        const bool some = job < pairs.jobs;
        const i32 which = some ? job / t : 0, j = some ? job % t : 0;
        const i32 feature = features[j], kind = kinds[feature], missing = kind & 0xffff;
        const Line line = lines[first_line + which];
        const i32 child = !some || part > 1 ? -1 : part == 0 ? line.node : line.sibling;
        const Node &node = nodes[max(child, 0)];
        const i32 v = node.state == NEW ? child : -1, slot = node.slot, depth = node.depth;
#if GROUP > 32
        Terms &terms = terms_of_group[group];
        if (lane == 0)
#else
        Terms terms;
#endif
        {
            terms = terms_of(node, state, rule, missing);
#if BOUNDED
            if (v >= 0) {
                terms.within = bounds_of(nodes, v, bounds, directions, state, rule);
                terms.direction = directions[feature];
                if (j == 0 && lane == 0)
                    bounds[v] = terms.within;
            }
#endif
        }
        Cells cells;
        complete(cells, rooms, at, some && line.listed ? which : -1, part, v < 0 ? -1 : slot, places[j], missing + 1,
                 is_packed(line.rows), slot < slots && depth + 1 < rule->max_depth);
        __syncthreads(); // from here on a group's room is its own
        bool may = v >= 0;
#if BOUNDED
        may = may && terms.within.low < terms.within.high; // else all leaves below have one value
#endif
#if EXTRA_TREES
        const Stream of_cuts = {cut_seed_low, cut_seed_high, *cut_iteration, cut_name};
        terms.word = philox(of_cuts, block_of(number_of(node.sum_g, node.sum_h), feature)).x;
#endif
#if INTERACTIONS
        may = may && may_follow(nodes, v, feature, column_of, sets, set_words, most_columns);
#endif
        const u32 *bits = root_cuts && v == 0 ? (const u32 *)selection + root_cuts + 8 * j : nullptr;
        const i64 draw = draws == OF_LEVELS ? depth : v;
        may = may && (!words || (chosen[draw * words + (j >> 5)] >> (j & 31) & 1));
        const i64 of_pair = 2 * which + part;
        Handed &own = rooms[group].handed;
        Found found = {0.0, 0, 0, 0, 0};
#if SETS
        if (may && kind >> 16)
            found = best_set(cells, terms, bits, limits, rooms[group].ends, candidates + of_pair * t + j);
        else if (may)
#endif
        {
            lay(own, cells, missing + 1);
            __syncwarp();
            found = search_cuts(Laid{own.sums, own.rows}, terms, may ? own_bits(bits) : 0, told);
        }
        if (v < 0 || lane > 31)
            continue; // no barrier follows in this pass
        if (lane == 0)
            candidates[of_pair * t + j].found = found;
        if (last_warp(arrived + of_pair, t))
            take_best(nodes + v, candidates + of_pair * t, features, kinds, t, noise);
    }
    if (choose && last_block(&state->arrived)) {
        const Growth growth = {kinds, rule, lines, cursor, routes, node_of_slot, state->unit_h, slots, HERE};
        if (choose == 1)
            choose_level(state, nodes, growth);
        else
            choose_best(state, nodes, growth);
    }
}
