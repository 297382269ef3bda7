// The record of a finished tree for the host: its head and its nodes, with leaf values.

// Head of a tree's record, before its nodes.
struct Head {
    f64 unit_h;
    i32 n_nodes;
    i32 error; // 1: a gradient, or what rows are drawn by, was not finite; 2: more rows were drawn than there is room for
};

// A tree's record.
struct Record {
    i32 place, capacity;
    Head *heads;
    Node *nodes;
};

// By one thread.
static __device__ __forceinline__ void keep_head(const State *state, const State *all, i32 lost, const Record &record)
{
    const i32 error = (state->error | all->error | (lost & 2) ? 1 : 0) | (lost & 1 ? 2 : 0);
    record.heads[record.place] = {state->unit_h, state->n_nodes, error};
}

// Nodes first .. end - 1. By a block.
static __device__ __forceinline__ void keep_nodes(const Node *nodes, i32 first, i32 end, const Record &record)
{
    const i32 per_node = (i32)(sizeof(Node) / sizeof(int4));
    const int4 *from = (const int4 *)(nodes + first);
    int4 *to = (int4 *)(record.nodes + (i64)record.place * record.capacity + first);
    for (i32 i = threadIdx.x; i < (end - first) * per_node; i += blockDim.x)
        to[i] = from[i];
}

// -G / (H + lambda) at a leaf; 0 elsewhere, and without rows. For a stump whose leaves share one value, G is the leaf's
// sum less the other's and H the sum of both: so one value is the negative of the other, to the last bit.
// alpha: G is brought nearer to 0 by so much; most: the value is clipped to so much on either side of 0.
static __device__ __forceinline__ f64 leaf_value_of(i32 feature, f64 g, f64 below, f64 alpha, f64 most)
{
    const f64 value = feature < 0 && below > 0.0 ? -soft_threshold(g, alpha) / below : 0.0;
    return (value < -most ? -most : value > most ? most : value) + 0.0;
}
