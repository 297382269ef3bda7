// Counting what a kernel reads and writes. The compiler is asked to instrument for the race detector
// (-fsanitize=thread), and the calls it puts in front of every access end here instead of in its library.
#pragma once

#ifdef CUDA_EMULATOR_COUNTS
#define EMULATOR_UNCOUNTED __attribute__((no_sanitize("thread"), noinline))

namespace emulator {

// The array an address is in; null for stacks, shared and constant memory.
EMULATOR_UNCOUNTED inline Array* array_of(uint64_t address) {
  uint64_t low = 0, high = job ? job->n_arrays : 0;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (job->arrays[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  return job && low < job->n_arrays && job->arrays[low].begin <= address ? &job->arrays[low] : nullptr;
}

EMULATOR_UNCOUNTED inline void count_access(void* p, uint64_t size, bool write) {
  uint64_t address = reinterpret_cast<uint64_t>(p);
  Array* array = array_of(address);
  if (!array) return;
  (write ? array->written : array->read) += size;
  for (uint64_t s = (address - array->begin) / 32; s <= (address + size - 1 - array->begin) / 32; ++s)
    array->sectors[s] |= write ? 2 : 1;
}

EMULATOR_UNCOUNTED inline void count_atomic(void* p, uint64_t) {
  Array* array = array_of(reinterpret_cast<uint64_t>(p));
  if (!array) ++job->shared_atomics;
  else ++array->atomics, array->sectors[(reinterpret_cast<uint64_t>(p) - array->begin) / 32] |= 3;
}

}  // namespace emulator

#define EMULATOR_HOOK extern "C" EMULATOR_UNCOUNTED __attribute__((visibility("hidden"))) void
#define EMULATOR_HOOKS(size)                                                                               \
  EMULATOR_HOOK __tsan_read##size(void* p) { emulator::count_access(p, size, false); }                     \
  EMULATOR_HOOK __tsan_write##size(void* p) { emulator::count_access(p, size, true); }                     \
  EMULATOR_HOOK __tsan_unaligned_read##size(void* p) { emulator::count_access(p, size, false); }           \
  EMULATOR_HOOK __tsan_unaligned_write##size(void* p) { emulator::count_access(p, size, true); }           \
  EMULATOR_HOOK __tsan_volatile_read##size(void* p) { emulator::count_access(p, size, false); }            \
  EMULATOR_HOOK __tsan_volatile_write##size(void* p) { emulator::count_access(p, size, true); }
EMULATOR_HOOKS(1)
EMULATOR_HOOKS(2)
EMULATOR_HOOKS(4)
EMULATOR_HOOKS(8)
EMULATOR_HOOKS(16)
EMULATOR_HOOK __tsan_read_range(void* p, unsigned long n) { emulator::count_access(p, n, false); }
EMULATOR_HOOK __tsan_write_range(void* p, unsigned long n) { emulator::count_access(p, n, true); }
EMULATOR_HOOK __tsan_init() {}
EMULATOR_HOOK __tsan_func_entry(void*) {}
EMULATOR_HOOK __tsan_func_exit() {}

#else
#define EMULATOR_UNCOUNTED
namespace emulator {
inline void count_atomic(void*, uint64_t) {}
}  // namespace emulator
#endif
