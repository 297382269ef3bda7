// A CUDA thread is a fiber: a stack of its own, and a switch that the scheduler of block.h decides about.
#pragma once

namespace emulator {

enum State : unsigned char { EXITED, RUNNABLE, AT_BARRIER, AT_WARP, AT_CLUSTER };
enum Op : unsigned char { SYNC, SHUFFLE, BALLOT, MATCH, SUM, LEAST, LARGEST, AND, OR, XOR };

struct Fiber {
  void* sp;  // its stack pointer while it does not run (x86-64), or a ucontext_t*
  char* stack;
  uint3 tid;
  unsigned id;
  State state;
  Op op;  // the warp operation it waits in: operation, mask, this lane's value, the lane it reads, the result
  unsigned mask;
  uint64_t value, result;
  int from;
  const char* file;  // where it waits
  int line;
  bool at_cluster;      // it has arrived at the barrier of its cluster, number ``generation``
  unsigned generation;
  void *tsan, *asan;
};

struct Array {  // a device array that the kernel was given, and what was done to it; mirrored in launch.py
  uint64_t begin, end;
  uint64_t read, written, atomics;  // bytes, bytes, operations
  unsigned char* sectors;           // one per 32 bytes of it: bit 0 read, bit 1 written
};

struct Launch {  // mirrored in launch.py
  unsigned grid[3], block[3];
  uint64_t shared, seed, first, last;  // the blocks [first, last) are run
  Array* arrays;                       // by address; only looked at by a build that counts
  uint64_t n_arrays, shared_atomics;
  int order;           // 0 ascending, 1 descending, 2 random in every round
  int yield_permille;  // chance that an atomic operation gives way to another thread
  int chained;         // race detector: 1 orders each block before the next, 0 looks for races between blocks
  char* stacks;        // of MOST_THREADS fibers, guard pages among them; one process has maps for only so many
  void** threads;      // of the race detector, TURNS times MOST_THREADS, made when first used: each takes it half a
                       // millisecond and half a megabyte, so launches and modules share them
  void* cluster;       // what the blocks of a cluster share (cluster.h), or null
  char error[1024];
};

#if defined(__SANITIZE_ADDRESS__) || defined(EMULATOR_RACES)
constexpr size_t STACK = 256 << 10;
#else
constexpr size_t STACK = 64 << 10;
#endif
constexpr size_t SHARED_STACK = 64 << 10;  // as launch.py lays them out
constexpr size_t GUARD_PAGE = 4096;
constexpr unsigned MOST_THREADS = 1024;
constexpr unsigned TURNS = 3;  // blocks that may race with one another; the fourth follows the first

static Fiber fibers[MOST_THREADS], *current;
static Launch* job;
static void *host_sp, *host_asan, *host_tsan, *dynamic_shared;
static const void* host_stack;
static size_t host_stack_size;

#ifdef EMULATOR_RACES
inline void release(void* p) { __tsan_release(p); }
inline void acquire(void* p) { __tsan_acquire(p); }
inline void ignore_races(const void* p, size_t n, const char* why) { AnnotateBenignRaceSized(__FILE__, __LINE__, p, n, why); }
#else
inline void release(void*) {}
inline void acquire(void*) {}
inline void ignore_races(const void*, size_t, const char*) {}
#endif

#ifndef EMULATOR_UCONTEXT
// Saves the callee-saved registers and changes stacks. Not "ret": the return predictor would always miss.
extern "C" void cuda_emulator_switch(void** save, void* to) __attribute__((visibility("hidden")));
asm(R"(
.text
.globl cuda_emulator_switch
.hidden cuda_emulator_switch
.type cuda_emulator_switch,@function
cuda_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size cuda_emulator_switch,.-cuda_emulator_switch
)");

// A stack that cuda_emulator_switch enters main with. Tops are staggered: equal ones would share cache sets.
EMULATOR_RAW inline void* fresh_stack(Fiber& f, void (*main)()) {
  void** sp = reinterpret_cast<void**>(f.stack + STACK - f.id % 16 * 192) - 1;
  sp[0] = nullptr;  // main never returns
  *--sp = reinterpret_cast<void*>(main);
  sp -= 6;  // six registers
  for (int i = 0; i < 6; ++i) sp[i] = nullptr;
  return sp;
}
#else
static ucontext_t contexts[MOST_THREADS + 1];

EMULATOR_RAW inline void cuda_emulator_switch(void** save, void* to) {
  ucontext_t* here = current && save == &current->sp ? &contexts[current->id] : &contexts[MOST_THREADS];
  *save = here;
  swapcontext(here, static_cast<ucontext_t*>(to));
}

EMULATOR_RAW inline void* fresh_stack(Fiber& f, void (*main)()) {
  ucontext_t* context = &contexts[f.id];
  getcontext(context);
  context->uc_stack.ss_sp = f.stack, context->uc_stack.ss_size = STACK, context->uc_link = nullptr;
  makecontext(context, main, 0);
  return context;
}
#endif

// Back to the scheduler. `last`: this fiber never runs again.
EMULATOR_RAW inline void leave(bool last = false) {
  Fiber* me = current;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(last ? nullptr : &me->asan, host_stack, host_stack_size);
#endif
#ifdef EMULATOR_RACES
  __tsan_switch_to_fiber(host_tsan, __tsan_switch_to_fiber_no_sync);
#endif
  (void)last;
  cuda_emulator_switch(&me->sp, host_sp);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(me->asan, nullptr, nullptr);
#endif
  asm volatile("" ::: "memory");
}

// From the scheduler into a fiber, until it waits or ends.
EMULATOR_RAW inline void enter(Fiber& f) {
  current = &f;
  threadIdx = f.tid;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&host_asan, f.stack, STACK);
#endif
#ifdef EMULATOR_RACES
  __tsan_switch_to_fiber(f.tsan, __tsan_switch_to_fiber_no_sync);
#endif
  cuda_emulator_switch(&host_sp, f.sp);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(host_asan, nullptr, nullptr);
#endif
  current = nullptr;
  asm volatile("" ::: "memory");
}

// A runnable fiber for thread `id` of a block. Under a sanitizer, which remembers stacks, a module has its own, made
// once. In front of each is a page that traps.
EMULATOR_RAW inline void prepare(Fiber& f, unsigned id, unsigned block, void (*main)()) {
  if (STACK == SHARED_STACK) {
    f.stack = job->stacks + id * (STACK + GUARD_PAGE) + GUARD_PAGE;
  } else if (!f.stack) {
    void* p = mmap(nullptr, STACK + GUARD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
    mprotect(p, GUARD_PAGE, PROT_NONE);
    f.stack = static_cast<char*>(p) + GUARD_PAGE;
    ignore_races(f.stack, STACK, "stacks are reused by later blocks");
  }
  f.id = id;
  f.tid = {id % blockDim.x, id / blockDim.x % blockDim.y, id / (blockDim.x * blockDim.y)};
  f.state = RUNNABLE;
  f.at_cluster = false;
  f.asan = nullptr;
  (void)block;
#ifdef EMULATOR_RACES
  void*& thread = job->threads[(job->chained ? 0 : block % TURNS) * MOST_THREADS + id];
  if (!thread) thread = __tsan_create_fiber(0);
  f.tsan = thread;
#endif
  f.sp = fresh_stack(f, main);
}

}  // namespace emulator
