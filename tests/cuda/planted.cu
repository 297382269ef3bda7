// Planted bugs, one per kernel: what the emulator and its sanitizers must find. With -DFIXED they are not there.

extern "C" __global__ void divergent_barrier(int *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else {
        out[threadIdx.x] = 1;
        __syncthreads();
    }
}

extern "C" __global__ void missing_lane(int *out)
{
    if (threadIdx.x & 1)
        out[threadIdx.x] = __shfl_sync(0xffffffffu, (int)threadIdx.x, 0);
    else
        __syncthreads();
}

extern "C" __global__ void wrong_mask(int *out)
{
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_down_sync(0xff00u, (int)threadIdx.x, 1);
}

// Reads a neighbour's slot without a barrier.
extern "C" __global__ void missing_barrier(int *out)
{
    __shared__ int s[256];
    s[threadIdx.x] = threadIdx.x;
#ifdef FIXED
    __syncthreads();
#endif
    out[threadIdx.x] = s[255 - threadIdx.x];
}

// The classic reduction of a warp in lock step.
extern "C" __global__ void warp_synchronous(int *out)
{
    __shared__ volatile int s[64];
    const int i = threadIdx.x;
    s[i] = i;
    s[i + 32] = 0;
    for (int d = 16; d; d >>= 1) {
#ifdef FIXED
        __syncwarp();
        const int other = s[i + d];
        __syncwarp();
        s[i] = s[i] + other;
#else
        s[i] = s[i] + s[i + d];
#endif
    }
    if (i == 0)
        *out = s[0];
}

// The next round overwrites what a slow warp still reads.
extern "C" __global__ void missing_second_barrier(const int *x, int *out, int rounds)
{
    __shared__ int s[256];
    int sum = 0;
    for (int r = 0; r < rounds; ++r) {
        s[threadIdx.x] = x[r * 256 + threadIdx.x];
        __syncthreads();
        sum += s[(threadIdx.x + 33) % 256];
#ifdef FIXED
        __syncthreads();
#endif
    }
    out[threadIdx.x] = sum;
}

// A plain += where an atomic operation is needed: in every order of whole intervals between barriers the sum is right.
extern "C" __global__ void lost_update(int *out)
{
    __shared__ int s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
#ifdef FIXED
    atomicAdd(&s, 1);
#else
    s += 1;
#endif
    __syncthreads();
    if (threadIdx.x == 0)
        *out = s;
}

// Blocks write the same word of global memory.
extern "C" __global__ void block_race(int *out)
{
    if (threadIdx.x == 0) {
#ifdef FIXED
        atomicAdd(out, 1);
#else
        out[0] = out[0] + 1;
#endif
    }
}

// The block that is done last adds up what the others wrote.
extern "C" __global__ void last_block(const int *x, int *parts, unsigned *ticket, int *out)
{
    __shared__ int is_last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = x[blockIdx.x];
#ifdef FIXED
        __threadfence();
#endif
        is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
#ifdef FIXED
        __threadfence();
#endif
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int sum = 0;
        for (unsigned b = 0; b < gridDim.x; ++b)
            sum += parts[b];
        *out = sum;
    }
}

extern "C" __global__ void beyond_static(int *out, int k)
{
    __shared__ int s[64];
    __shared__ int next[64];
    next[threadIdx.x] = 0;
    s[threadIdx.x + k] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + next[threadIdx.x];
}

extern "C" __global__ void beyond_dynamic(int *out, int k)
{
    extern __shared__ int s[];
    s[threadIdx.x + k] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void beyond_local(int *out, int k)
{
    int a[4] = {1, 2, 3, 4};
    out[threadIdx.x] = a[k & 7];
}

extern "C" __global__ void beyond_write(int *out, int k) { out[(int)threadIdx.x + k] = 1; }

extern "C" __global__ void beyond_read(const int *x, int *out, int k) { out[threadIdx.x] = x[threadIdx.x + k]; }

extern "C" __global__ void uninitialised_shared(float *out)
{
    __shared__ float s[64];
    s[threadIdx.x / 2] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void uninitialised_global(const float *fresh, float *out) { out[threadIdx.x] = fresh[threadIdx.x]; }

extern "C" __global__ void wide_shift(int *out, int k) { out[threadIdx.x] = 1 << k; }

extern "C" __global__ void overflow(int *out, int k) { out[0] = 2147483647 + k; }

extern "C" __global__ void misaligned(const float *x, float *out)
{
    const float4 v = *(const float4 *)(x + 1);
    out[0] = v.x + v.w;
}

extern "C" __global__ void null_store(int *out)
{
    if (threadIdx.x == 37)
        *(volatile int *)0 = 1;
}

extern "C" __global__ void division(int *out, int k) { out[0] = 7 / k; }

extern "C" __global__ void deep_stack(int *out, int n)
{
    volatile char big[60000];
    for (int i = 0; i < 60000; i += 100)
        big[i] = 1;
    char more[30000];
    for (int i = 0; i < 30000; ++i)
        more[i] = big[i] + n;
    *out = more[n];
}

// (1 + 2^-30)(1 - 2^-30) - 1 is -2^-60, or 0 when the product is rounded first.
extern "C" __global__ void contracted(const double *a, const double *b, double *out)
{
    out[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x] - 1.0;
}

extern "C" __global__ void spins(float *out)
{
    __shared__ float s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    atomicAdd(&s, 1.0f);
    __syncthreads();
    if (threadIdx.x == 0)
        *out = s;
}

extern "C" __global__ void __launch_bounds__(128) small_blocks(int *out, int n)
{
    if (blockIdx.x * blockDim.x + threadIdx.x < n)
        out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

// A block reads what the other one of its cluster has written, without their barrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_race(int *out)
{
    if (threadIdx.x == 0)
        out[blockIdx.x] = 1 + blockIdx.x;
#ifdef FIXED
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
#endif
    if (threadIdx.x == 0)
        out[2 + blockIdx.x] = out[1 - blockIdx.x];
}

// Half of a block waits for its cluster, and half for the block.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_deadlock(int *out)
{
    if (threadIdx.x < 16) {
        __cluster_barrier_arrive();
        __cluster_barrier_wait();
    } else
        __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_wait_alone(int *out)
{
    __cluster_barrier_wait();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_stray(int *out)
{
    if (blockIdx.x == 1)
        out[1 << 28] = 1;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}

// A block that has ended counts as one that has arrived.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_ends_early(int *out)
{
    if (blockIdx.x == 1)
        return;
    for (int i = 0; i < 3; ++i) {
        __cluster_barrier_arrive();
        __cluster_barrier_wait();
    }
    out[threadIdx.x] = 1;
}
