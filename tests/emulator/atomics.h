// Atomic operations: relaxed, and only the overloads that CUDA has, so that atomicAdd(long long*) is an error here too.
#pragma once

namespace emulator {

template <class To, class From>
inline To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "");
  To out;
  memcpy(&out, &v, sizeof out);
  return out;
}

template <class T, class F>
EMULATOR_UNCOUNTED inline T update(T* p, F change) {  // any type of 32 or 64 bits, by compare-and-swap
  using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  maybe_yield();
  count_atomic(p, sizeof(T));
  Bits* q = reinterpret_cast<Bits*>(p);
  Bits old = __atomic_load_n(q, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(q, &old, bits<Bits>(T(change(bits<T>(old)))), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  return bits<T>(old);
}

template <class T>
EMULATOR_UNCOUNTED inline T swap_if(T* p, T expected, T v) {
  maybe_yield();
  count_atomic(p, sizeof(T));
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

}  // namespace emulator

#define EMULATOR_ATOMIC(name, T, expression) \
  inline T name(T* p, T v) { return emulator::update(p, [v](T o) -> T { return expression; }); }
#define EMULATOR_ATOMICS(T)                                                      \
  EMULATOR_ATOMIC(atomicAdd, T, static_cast<T>(std::make_unsigned_t<T>(o) + v))  \
  EMULATOR_ATOMIC(atomicAnd, T, o & v)                                           \
  EMULATOR_ATOMIC(atomicOr, T, o | v)                                            \
  EMULATOR_ATOMIC(atomicXor, T, o ^ v)                                           \
  EMULATOR_ATOMIC(atomicExch, T, (void(o), v))                                   \
  inline T atomicCAS(T* p, T expected, T v) { return emulator::swap_if(p, expected, v); }
EMULATOR_ATOMICS(int)
EMULATOR_ATOMICS(unsigned)
EMULATOR_ATOMICS(unsigned long long)
EMULATOR_ATOMIC(atomicSub, int, int(unsigned(o) - v))
EMULATOR_ATOMIC(atomicSub, unsigned, o - v)
EMULATOR_ATOMIC(atomicAdd, float, o + v)
EMULATOR_ATOMIC(atomicAdd, double, o + v)
EMULATOR_ATOMIC(atomicExch, float, (void(o), v))
#define EMULATOR_ATOMIC_ENDS(T)               \
  EMULATOR_ATOMIC(atomicMax, T, o < v ? v : o) \
  EMULATOR_ATOMIC(atomicMin, T, v < o ? v : o)
EMULATOR_ATOMIC_ENDS(int)
EMULATOR_ATOMIC_ENDS(unsigned)
EMULATOR_ATOMIC_ENDS(long long)
EMULATOR_ATOMIC_ENDS(unsigned long long)
EMULATOR_ATOMIC(atomicInc, unsigned, o >= v ? 0 : o + 1)
EMULATOR_ATOMIC(atomicDec, unsigned, o == 0 || o > v ? v : o - 1)
