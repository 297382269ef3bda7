// One block: its threads in turn, its barriers, its warps' collective operations, and what is wrong with them.
#pragma once

namespace emulator {

// In cluster.h.
void block_may_arrive();
bool sleep_at_cluster();

static unsigned n_threads, n_live, n_arrived;
static int votes[3], counted[3];  // __syncthreads_count, _and, _or: of those who arrived, of the last barrier
static const char* barrier_file;
static int barrier_line;
static void (*entry)(void*);
static void* entry_arguments;
static bool aborted;
static uint64_t rng;
static struct { void* p; size_t n; } shared_variables[256];
static unsigned n_shared_variables;

// What orders memory for the race detector. Two objects per barrier, used in turn: a thread that still leaves one
// barrier must not be ordered with a thread that has arrived at the next. And a set per block, in turn.
static unsigned block_number, barrier_number, warp_number[MOST_THREADS / 32];
static char launch_order, end_order, fence_order, barrier_order[64][2], warp_order[64][MOST_THREADS / 32][2];

EMULATOR_RAW inline void report(const char* format, ...) {
  char* text = job->error;
  size_t room = sizeof job->error;
  size_t n = snprintf(text, room, "block (%u,%u,%u)", blockIdx.x, blockIdx.y, blockIdx.z);
  if (current) n += snprintf(text + n, room - n, " thread (%u,%u,%u)", current->tid.x, current->tid.y, current->tid.z);
  n += snprintf(text + n, room - n, ": ");
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + n, room - n, format, arguments);
  va_end(arguments);
  aborted = true;
}

// This thread is over; those that still wait are abandoned if the launch is.
[[noreturn]] EMULATOR_RAW inline void die() {
  leave(true);
  abort();
}

EMULATOR_RAW inline uint64_t next_random() {  // splitmix64
  uint64_t z = rng += 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

// NaN, -1, 0xff: reads of what nobody wrote show. Between blocks shared memory does not race: here all blocks have it
// at one address, on a device each has its own.
EMULATOR_RAW inline void poison(void* p, size_t n) {
  volatile char* c = static_cast<volatile char*>(p);
  volatile uint64_t* words = static_cast<volatile uint64_t*>(p);
  size_t i = 0;
  if (uintptr_t(p) % 8 == 0)
    for (; i + 8 <= n; i += 8) words[i / 8] = ~0ull;
  for (; i < n; ++i) c[i] = char(0xff);
  if (n && !job->chained) ignore_races(p, n, "shared memory");
}

EMULATOR_RAW inline void shared_variable(void* p, size_t n) {
  for (unsigned i = 0; i < n_shared_variables; ++i)
    if (shared_variables[i].p == p) return;
  if (n_shared_variables == 256) abort();
  shared_variables[n_shared_variables++] = {p, n};
  poison(p, n);
}

EMULATOR_RAW inline void clear_votes() { votes[0] = votes[2] = 0, votes[1] = 1; }

EMULATOR_RAW inline void open_barrier() {
  memcpy(counted, votes, sizeof counted);
  clear_votes();
  n_arrived = 0;
  ++barrier_number;
  for (unsigned i = 0; i < n_threads; ++i)
    if (fibers[i].state == AT_BARRIER) fibers[i].state = RUNNABLE;
}

EMULATOR_RAW inline int barrier(int what, int vote, const char* file, int line) {
  Fiber& me = *current;
  if (n_arrived && (line != barrier_line || (file != barrier_file && strcmp(file, barrier_file)))) {
    report("divergent __syncthreads: this thread is at %s:%d, others wait at %s:%d", file, line, barrier_file, barrier_line);
    die();
  }
  barrier_file = me.file = file, barrier_line = me.line = line;
  votes[0] += vote != 0, votes[1] &= vote != 0, votes[2] |= vote != 0;
  char* order = &barrier_order[block_number % 64][barrier_number & 1];
  release(order);
  me.state = AT_BARRIER;
  if (++n_arrived == n_live) open_barrier();
  else leave();
  if (aborted) die();
  acquire(order);
  return counted[what];
}

EMULATOR_RAW inline uint64_t combined(Op op, uint64_t a, uint64_t b) {
  switch (op) {
    case SUM: return a + b;
    case LEAST: return int64_t(b) < int64_t(a) ? b : a;
    case LARGEST: return int64_t(b) > int64_t(a) ? b : a;
    case AND: return a & b;
    case OR: return a | b;
    default: return a ^ b;
  }
}

// What a lane gets, when the lanes of `part` take part. A lane that is read and does not take part gives poison:
// undefined on a device.
EMULATOR_RAW inline uint64_t lane_result(const Fiber* warp, const Fiber& me, Op op, unsigned part) {
  if (op == SHUFFLE) return part >> me.from & 1 ? warp[me.from].value : ~0ull;
  uint64_t result = 0;
  bool first = true;
  for (unsigned l = 0; l < 32; ++l) {
    if (!(part >> l & 1)) continue;
    uint64_t value = warp[l].value;
    if (op == BALLOT) result |= uint64_t(value != 0) << l;
    else if (op == MATCH) result |= uint64_t(value == me.value) << l;
    else result = first ? value : combined(op, result, value);
    first = false;
  }
  return result;
}

// When every lane of the mask that has not exited waits in the same operation, each gets its result. The lane that was
// missing the last time is looked at first: so 32 lanes that arrive one by one take some 64 looks, and not 500.
EMULATOR_RAW inline bool finish_warp(unsigned base, Op op, unsigned mask) {
  static unsigned char missing[MOST_THREADS / 32];
  Fiber* warp = fibers + base;
  unsigned part = 0, start = missing[base / 32];
  for (unsigned k = 0; k < 32; ++k) {
    unsigned l = (start + k) % 32;
    if (!(mask >> l & 1) || base + l >= n_threads || warp[l].state == EXITED) continue;
    if (warp[l].state != AT_WARP || warp[l].op != op || warp[l].mask != mask) {
      missing[base / 32] = l;
      return false;
    }
    part |= 1u << l;
  }
  ++warp_number[base / 32];
  bool same_for_all = op != SHUFFLE && op != MATCH;
  uint64_t common = same_for_all ? lane_result(warp, warp[0], op, part) : 0;
  for (unsigned l = 0; l < 32; ++l)
    if (part >> l & 1) warp[l].result = same_for_all ? common : lane_result(warp, warp[l], op, part);
  for (unsigned l = 0; l < 32; ++l)
    if (part >> l & 1) warp[l].state = RUNNABLE;
  return true;
}

EMULATOR_RAW inline uint64_t collective(Op op, unsigned mask, uint64_t value, int from, const char* file, int line) {
  Fiber& me = *current;
  unsigned base = me.id & ~31u;
  if (!(mask >> (me.id & 31) & 1)) {
    report("this lane is not in the mask %08x at %s:%d", mask, file, line);
    die();
  }
  me.op = op, me.mask = mask, me.value = value, me.from = from, me.file = file, me.line = line;
  me.state = AT_WARP;
  char* order = &warp_order[block_number % 64][base / 32][warp_number[base / 32] & 1];
  release(order);
  if (!finish_warp(base, op, mask)) leave();
  if (aborted) die();
  acquire(order);
  return me.result;
}

EMULATOR_RAW inline void yield_by_chance() {
  if (next_random() % 1000 < unsigned(job->yield_permille)) leave();
}
inline void maybe_yield() {
  if (job->yield_permille) yield_by_chance();
}

EMULATOR_RAW static void thread_main() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &host_stack, &host_stack_size);
#endif
  acquire(&launch_order);
  entry(entry_arguments);
  release(&end_order);
  Fiber& me = *current;
  me.state = EXITED;
  --n_live;
  if (n_live && n_arrived == n_live) open_barrier();  // threads that have ended do not count
  block_may_arrive();
  unsigned base = me.id & ~31u;                       // and a warp may have waited for this lane only
  for (unsigned l = 0; l < 32 && base + l < n_threads; ++l) {
    Fiber& f = fibers[base + l];
    if (f.state == AT_WARP && finish_warp(base, f.op, f.mask)) break;
  }
  die();
}

// Nobody can run: say who waits where, each place once.
EMULATOR_RAW inline void report_deadlock() {
  current = nullptr;
  char text[700];
  size_t n = 0, shown = 0;
  text[0] = 0;
  for (unsigned i = 0; i < n_threads && shown < 4; ++i) {
    const Fiber& f = fibers[i];
    if (f.state == EXITED) continue;
    unsigned first = n_threads, same = 0;
    for (unsigned j = n_threads; j-- > 0;) {
      const Fiber& other = fibers[j];
      bool alike = other.state == f.state && other.line == f.line && (f.state != AT_WARP || other.mask == f.mask);
      if (alike) first = j, ++same;
    }
    if (first < i) continue;
    ++shown;
    const char* what = f.state == AT_BARRIER ? "__syncthreads" : f.state == AT_WARP ? "a warp operation" : "a cluster's barrier";
    n += snprintf(text + n, sizeof text - n, " [%u thread(s), first %u, at %s %s:%d", same, i, what, f.file, f.line);
    if (f.state == AT_WARP) n += snprintf(text + n, sizeof text - n, " mask %08x", f.mask);
    n += snprintf(text + n, sizeof text - n, "]");
  }
  report("deadlock:%s", text);
}

// Everyone who can run, once, in random order.
EMULATOR_RAW inline bool random_round() {
  static unsigned runnable[MOST_THREADS];
  unsigned n = 0;
  for (unsigned i = 0; i < n_threads; ++i)
    if (fibers[i].state == RUNNABLE) runnable[n++] = i;
  for (unsigned i = n; i > 1; --i) std::swap(runnable[i - 1], runnable[next_random() % i]);
  for (unsigned i = 0; i < n && !aborted; ++i) enter(fibers[runnable[i]]);
  return n != 0;
}

// Warp by warp, each as far as it can go.
EMULATOR_RAW inline bool ordered_round(bool descending) {
  bool progress = false;
  unsigned n_warps = (n_threads + 31) / 32;
  for (unsigned k = 0; k < n_warps && !aborted; ++k) {
    unsigned base = 32 * (descending ? n_warps - 1 - k : k);
    for (bool again = true; again && !aborted;) {
      again = false;
      for (unsigned j = 0; j < 32 && !aborted; ++j) {
        unsigned i = base + (descending ? 31 - j : j);
        if (i >= n_threads || fibers[i].state != RUNNABLE) continue;
        enter(fibers[i]);
        again = progress = true;
      }
    }
  }
  return progress;
}

EMULATOR_RAW inline void run_block() {
  n_live = n_threads, n_arrived = 0;
  clear_votes();
  for (unsigned i = 0; i < n_threads; ++i) prepare(fibers[i], i, block_number, thread_main);
  while (n_live && !aborted)
    if (!(job->order == 2 ? random_round() : ordered_round(job->order == 1)) && !aborted && !sleep_at_cluster())
      report_deadlock();
}

}  // namespace emulator
