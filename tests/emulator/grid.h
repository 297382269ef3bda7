// One launch: its blocks one after another, traps, and entry points with the kernel's own types.
#pragma once

namespace emulator {

#if defined(__SANITIZE_ADDRESS__) || defined(EMULATOR_RACES)
constexpr bool TRAPS = false;  // the sanitizer reports them
#else
constexpr bool TRAPS = true;
#endif
static sigjmp_buf trap_exit;
static pthread_t trap_owner;
static bool running;
constexpr int SIGNALS[3] = {SIGSEGV, SIGBUS, SIGFPE};
static struct sigaction before[3];

static void on_trap(int signal, siginfo_t* info, void* context) {
  if (!running || !pthread_equal(trap_owner, pthread_self())) {  // another worker's, or not a kernel's at all
    for (int i = 0; i < 3; ++i) {
      if (SIGNALS[i] != signal) continue;
      if (before[i].sa_flags & SA_SIGINFO) return before[i].sa_sigaction(signal, info, context);
      sigaction(signal, &before[i], nullptr);  // back to it, and the same instruction again
    }
    return;
  }
  const char* what = signal == SIGFPE ? "arithmetic trap (division by zero?)" : "illegal memory access";
  report("%s at address %p", what, info->si_addr);
  siglongjmp(trap_exit, 1);
}

// Around a launch, by the host.
extern "C" EMULATOR_PUBLIC void cuda_emulator_traps(int on) {
  if (!TRAPS) return;
  struct sigaction action = {};
  action.sa_sigaction = on_trap, action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], on ? &action : &before[i], on ? &before[i] : nullptr);
}

// Block number k of the launch: ascending, descending, or all of them in a stride that is prime to their number.
inline uint64_t block_at(uint64_t k, uint64_t n) {
  if (job->order != 2 || n < 3) return job->order == 1 ? job->last - 1 - k : job->first + k;
  static uint64_t stride, start;
  if (k == 0) {
    start = next_random() % n;
    do stride = 1 + next_random() % (n - 1);
    while (std::gcd(stride, n) != 1);
  }
  return job->first + (start + k * stride) % n;
}

EMULATOR_RAW inline void run_blocks() {
  uint64_t n = job->last - job->first;
  for (uint64_t k = 0; k < n && !aborted; ++k) {
    uint64_t b = block_at(k, n);
    blockIdx = {unsigned(b % gridDim.x), unsigned(b / gridDim.x % gridDim.y), unsigned(b / (uint64_t(gridDim.x) * gridDim.y))};
    dynamic_shared = nullptr;  // of each block its own and of the exact size: the address sanitizer sees its end
    if (posix_memalign(&dynamic_shared, 16, job->shared ? job->shared : 1)) abort();
    poison(dynamic_shared, job->shared);
    for (unsigned i = 0; i < n_shared_variables; ++i) poison(shared_variables[i].p, shared_variables[i].n);
    ++block_number;
    release(&launch_order);
    if (job->cluster) begin_cluster();
    run_block();
    if (job->cluster) end_cluster();
    if (job->chained) {
      acquire(&end_order);
      free(dynamic_shared);
    }
    dynamic_shared = nullptr;
  }
  acquire(&end_order);
}

EMULATOR_RAW inline void run_grid(Launch* launch, void (*kernel)(void*), void* arguments) {
  job = launch, entry = kernel, entry_arguments = arguments, aborted = false, current = nullptr;
  rng = job->seed * 0x2545F4914F6CDD1Dull + 1;
  job->error[0] = 0;
  gridDim = dim3(job->grid[0], job->grid[1], job->grid[2]);
  blockDim = dim3(job->block[0], job->block[1], job->block[2]);
  n_threads = blockDim.x * blockDim.y * blockDim.z;
#ifdef EMULATOR_RACES
  host_tsan = __tsan_get_current_fiber();
#endif
  if (TRAPS) {
    static char signal_stack[64 << 10];
    stack_t mine = {}, old;
    mine.ss_sp = signal_stack, mine.ss_size = sizeof signal_stack;
    sigaltstack(&mine, &old);
    trap_owner = pthread_self(), running = true;
    if (!sigsetjmp(trap_exit, 1)) run_blocks();
    if (cluster) end_cluster();  // after a trap
    running = false;
    sigaltstack(&old, nullptr);
  } else {
    run_blocks();
  }
  current = nullptr;
  job = nullptr;
}

// The type of a parameter, for launch.py: p or P (const or not) before what a pointer points to, then i, u, f, b or
// V (a struct), then the size in bytes; V0 is void.
template <class T>
struct Code {
  static int put(char* out, size_t room) {
    if constexpr (std::is_pointer_v<T>) {
      using Element = std::remove_pointer_t<T>;
      int n = snprintf(out, room, std::is_const_v<Element> ? "p" : "P");
      return n + Code<std::remove_cv_t<Element>>::put(out + n, room - n);
    } else if constexpr (std::is_void_v<T>) {
      return snprintf(out, room, "V0");
    } else {
      char kind = std::is_same_v<T, bool>         ? 'b'
                  : std::is_floating_point_v<T>   ? 'f'
                  : !std::is_integral_v<T>        ? 'V'
                  : std::is_signed_v<T>           ? 'i'
                                                  : 'u';
      return snprintf(out, room, "%c%zu", kind, sizeof(T));
    }
  }
};

template <class... A>
const char* signature(void (*)(A...)) {
  static char text[64 + 16 * sizeof...(A)];
  int n = 0;
  ((n += Code<std::remove_cv_t<A>>::put(text + n, sizeof text - n), n += snprintf(text + n, sizeof text - n, " ")), ...);
  return text;
}

template <class... A>
struct Call {
  void (*kernel)(A...);
  void** arguments;
  template <size_t... I>
  void go(std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_cv_t<A>*>(arguments[I])...);
  }
  static void run(void* self) { static_cast<Call*>(self)->go(std::index_sequence_for<A...>{}); }
};

template <class... A>
void launch(Launch* job, void** arguments, void (*kernel)(A...)) {
  Call<A...> call{kernel, arguments};
  run_grid(job, Call<A...>::run, &call);
}

constexpr int first(int threads, int = 0, int = 0) { return threads; }

}  // namespace emulator

// One per kernel, from compiler.py; behind the name: blocks of its cluster, 0 without, and what __launch_bounds__ says.
#define CUDA_EMULATOR_ENTRY(name, cluster, ...)                                                               \
  extern "C" EMULATOR_PUBLIC int cuda_emulator_cluster_##name() { return cluster; }                           \
  extern "C" EMULATOR_PUBLIC int cuda_emulator_bound_##name() { return emulator::first(__VA_ARGS__); }        \
  extern "C" EMULATOR_PUBLIC const char* cuda_emulator_signature_##name() { return emulator::signature(name); } \
  extern "C" EMULATOR_PUBLIC void cuda_emulator_launch_##name(emulator::Launch* job, void** arguments) {      \
    emulator::launch(job, arguments, name);                                                                   \
  }
// One per module: a line for each kernel, its name and those of its parameters.
#define CUDA_EMULATOR_KERNELS(table) \
  extern "C" EMULATOR_PUBLIC const char* cuda_emulator_kernels() { return table; }
