// The words of CUDA C that are not C++: qualifiers, built-in variables, vector types.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static  // one copy per loaded library, which is one multiprocessor

// compiler.py puts the first behind every "__shared__ T name[4];", and the second in the place of
// "extern __shared__ T name[];", a clash of storage classes in plain C++.
#define CUDA_EMULATOR_SHARED(name) emulator::shared_variable((void*)&name, sizeof name)
#define CUDA_EMULATOR_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(emulator::dynamic_shared)

#define EMULATOR_PUBLIC __attribute__((visibility("default")))
// The machinery itself is not looked at by a sanitizer.
#define EMULATOR_RAW __attribute__((no_sanitize("address", "undefined", "thread"), noinline))
// Where the caller is: last parameters of everything that waits.
#define EMULATOR_SITE const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE()

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

#define EMULATOR_VECTORS(T, name)                                               \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                            \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; }; \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                    \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATOR_VECTORS(signed char, char)
EMULATOR_VECTORS(unsigned char, uchar)
EMULATOR_VECTORS(short, short)
EMULATOR_VECTORS(unsigned short, ushort)
EMULATOR_VECTORS(int, int)
EMULATOR_VECTORS(unsigned, uint)
EMULATOR_VECTORS(float, float)
EMULATOR_VECTORS(double, double)
EMULATOR_VECTORS(long long, longlong)
EMULATOR_VECTORS(unsigned long long, ulonglong)

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
constexpr int warpSize = 32;
