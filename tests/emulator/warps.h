// What CUDA C calls inside a kernel to wait: barriers, fences, warp operations.
#pragma once

inline void __syncthreads(EMULATOR_SITE) { emulator::barrier(0, 0, file_, line_); }
inline int __syncthreads_count(int p, EMULATOR_SITE) { return emulator::barrier(0, p, file_, line_); }
inline int __syncthreads_and(int p, EMULATOR_SITE) { return emulator::barrier(1, p, file_, line_); }
inline int __syncthreads_or(int p, EMULATOR_SITE) { return emulator::barrier(2, p, file_, line_); }

inline void __threadfence() {
  emulator::release(&emulator::fence_order);
  emulator::acquire(&emulator::fence_order);
  asm volatile("" ::: "memory");
}
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }

namespace emulator {

template <class T>
inline uint64_t packed(T v) {
  static_assert(sizeof(T) <= 8, "a lane hands over 64 bits at most");
  uint64_t u = 0;
  memcpy(&u, &v, sizeof v);
  return u;
}

template <class T>
inline T shuffle(unsigned mask, T v, int from, const char* file, int line) {
  uint64_t u = collective(SHUFFLE, mask, packed(v), from, file, line);
  T out;
  memcpy(&out, &u, sizeof out);
  return out;
}

inline int lane() { return int(current->id & 31); }

}  // namespace emulator

inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATOR_SITE) { emulator::collective(emulator::SYNC, mask, 0, 0, file_, line_); }
inline unsigned __activemask() { return 1u << emulator::lane(); }  // that lanes run together is never promised

template <class T>
inline T __shfl_sync(unsigned mask, T v, int from, int width = 32, EMULATOR_SITE) {
  return emulator::shuffle(mask, v, (emulator::lane() & ~(width - 1)) | (from & (width - 1)), file_, line_);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, EMULATOR_SITE) {
  int lane = emulator::lane(), from = lane - int(delta);
  return emulator::shuffle(mask, v, from < (lane & ~(width - 1)) ? lane : from, file_, line_);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, EMULATOR_SITE) {
  int lane = emulator::lane();
  bool outside = (lane & (width - 1)) + int(delta) >= width;
  return emulator::shuffle(mask, v, outside ? lane : lane + int(delta), file_, line_);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, EMULATOR_SITE) {
  int lane = emulator::lane(), from = lane ^ bits;
  return emulator::shuffle(mask, v, from >= (lane & ~(width - 1)) + width ? lane : from, file_, line_);
}

inline unsigned __ballot_sync(unsigned mask, int p, EMULATOR_SITE) {
  return unsigned(emulator::collective(emulator::BALLOT, mask, p != 0, 0, file_, line_));
}
inline int __any_sync(unsigned mask, int p, EMULATOR_SITE) {
  return emulator::collective(emulator::OR, mask, p != 0, 0, file_, line_) != 0;
}
inline int __all_sync(unsigned mask, int p, EMULATOR_SITE) {
  return emulator::collective(emulator::AND, mask, p != 0, 0, file_, line_) != 0;
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T v, EMULATOR_SITE) {
  return unsigned(emulator::collective(emulator::MATCH, mask, emulator::packed(v), 0, file_, line_));
}

#define EMULATOR_REDUCE(name, op)                                                                       \
  inline int name(unsigned mask, int v, EMULATOR_SITE) {                                                \
    return int(emulator::collective(emulator::op, mask, uint64_t(int64_t(v)), 0, file_, line_));        \
  }                                                                                                     \
  inline unsigned name(unsigned mask, unsigned v, EMULATOR_SITE) {                                      \
    return unsigned(emulator::collective(emulator::op, mask, v, 0, file_, line_));                      \
  }
EMULATOR_REDUCE(__reduce_add_sync, SUM)
EMULATOR_REDUCE(__reduce_min_sync, LEAST)
EMULATOR_REDUCE(__reduce_max_sync, LARGEST)
#define EMULATOR_REDUCE_BITS(name, op)                                                                  \
  inline unsigned name(unsigned mask, unsigned v, EMULATOR_SITE) {                                      \
    return unsigned(emulator::collective(emulator::op, mask, v, 0, file_, line_));                      \
  }
EMULATOR_REDUCE_BITS(__reduce_and_sync, AND)
EMULATOR_REDUCE_BITS(__reduce_or_sync, OR)
EMULATOR_REDUCE_BITS(__reduce_xor_sync, XOR)
