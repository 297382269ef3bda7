// The children's rows are known: the smaller ones end here, and each line learns how much work comes before its own. Of
// shards, ``cursor`` has the rows that are here, ``everywhere`` those of all, and ``here`` gets the former by node. By one
// block. In front: tree.cuh, blocks.cuh.
static __device__ void finish_lists(State *state, Node *nodes, Line *lines, const u32 *cursor, const Rule *rule,
                                    const u32 *everywhere = nullptr, i32 *here = nullptr)
{
    const i32 n_lines = state->n_lines;
    u32 before = 0;
    for (i32 first = 0; first < n_lines; first += blockDim.x) {
        const i32 i = first + threadIdx.x;
        Line line = {};
        if (i < n_lines) {
            line = lines[i];
            Node &node = nodes[line.node];
            node.count = SHARDED ? everywhere[i] : cursor[i];
            if (SHARDED)
                here[line.node] = cursor[i];
            bool some = node.state == NEW && enough_rows(node, rule);
            if (!some)
                node.state = CLOSED;
            if (line.sibling >= 0) {
                Node &sibling = nodes[line.sibling];
                sibling.count = nodes[node.parent].count - node.count;
                if (SHARDED)
                    here[line.sibling] = here[node.parent] - (i32)cursor[i];
                const bool other = sibling.state == NEW && enough_rows(sibling, rule);
                if (!other)
                    sibling.state = CLOSED;
                some |= other;
            }
            line.listed = line.listed && some;
            line.rows = line.listed ? (i32)cursor[i] : 0;
        }
        u32 more;
        line.first = before + block_scan(work_of(line.rows), more);
        before += more;
        if (i < n_lines)
            lines[i] = line;
    }
}
