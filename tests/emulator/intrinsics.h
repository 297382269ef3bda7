// Functions of the CUDA math library that C++ lacks. Those that end in _rn are correctly rounded and never contracted.
#pragma once

template <class T>
inline T __ldg(const T* p) { return *p; }
template <class T>
inline T __ldcs(const T* p) { return *p; }
template <class T>
inline T __ldcg(const T* p) { return *p; }
template <class T>
inline T __ldca(const T* p) { return *p; }
template <class T>
inline void __stcs(T* p, T v) { *p = v; }
template <class T>
inline void __stcg(T* p, T v) { *p = v; }

template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr auto min(A a, B b) {
  using C = std::common_type_t<A, B>;
  C x = C(a), y = C(b);
  return y < x || x != x ? y : x;  // NaN gives way to a number
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr auto max(A a, B b) {
  using C = std::common_type_t<A, B>;
  C x = C(a), y = C(b);
  return x < y || x != x ? y : x;
}

// Integers
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned __brev(unsigned v) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (v >> i & 1) << (31 - i);
  return r;
}
inline unsigned long long __brevll(unsigned long long v) {
  return static_cast<unsigned long long>(__brev(unsigned(v))) << 32 | __brev(unsigned(v >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= unsigned(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((uint64_t(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}

// Bits of floating-point numbers
inline unsigned __float_as_uint(float v) { return emulator::bits<unsigned>(v); }
inline int __float_as_int(float v) { return emulator::bits<int>(v); }
inline float __uint_as_float(unsigned v) { return emulator::bits<float>(v); }
inline float __int_as_float(int v) { return emulator::bits<float>(v); }
inline long long __double_as_longlong(double v) { return emulator::bits<long long>(v); }
inline double __longlong_as_double(long long v) { return emulator::bits<double>(v); }
inline int __double2hiint(double v) { return int(emulator::bits<uint64_t>(v) >> 32); }
inline int __double2loint(double v) { return int(emulator::bits<uint64_t>(v)); }
inline double __hiloint2double(int high, int low) { return emulator::bits<double>(uint64_t(unsigned(high)) << 32 | unsigned(low)); }

// Arithmetic
#define EMULATOR_ARITHMETIC(T, letter)                              \
  inline T __##letter##add_rn(T a, T b) { return a + b; }           \
  inline T __##letter##sub_rn(T a, T b) { return a - b; }           \
  inline T __##letter##mul_rn(T a, T b) { return a * b; }           \
  inline T __##letter##div_rn(T a, T b) { return a / b; }           \
  inline T __##letter##sqrt_rn(T a) { return std::sqrt(a); }        \
  inline T __##letter##rcp_rn(T a) { return T(1) / a; }
EMULATOR_ARITHMETIC(float, f)
EMULATOR_ARITHMETIC(double, d)
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float rsqrtf(float v) { return 1.0f / std::sqrt(v); }  // an approximation on a device, as are the next three
inline double rsqrt(double v) { return 1.0 / std::sqrt(v); }
inline float __expf(float v) { return std::exp(v); }
inline float __logf(float v) { return std::log(v); }
inline float __fdividef(float a, float b) { return a / b; }

// Conversions: out of range a device gives the nearest integer, and 0 for NaN (NaN to 64 bits: the sign bit)
namespace emulator {
template <class I, class F>
inline I nearest(F v) {
  using Limits = std::numeric_limits<I>;
  if (v != v) return sizeof(I) == 8 ? I(uint64_t(1) << 63) : I(0);
  v = std::nearbyint(v);
  if (v >= std::ldexp(F(1), Limits::digits)) return Limits::max();
  return v < F(Limits::min()) ? Limits::min() : I(v);
}
}  // namespace emulator
inline int __float2int_rn(float v) { return emulator::nearest<int>(v); }
inline unsigned __float2uint_rn(float v) { return emulator::nearest<unsigned>(v); }
inline long long __float2ll_rn(float v) { return emulator::nearest<long long>(v); }
inline unsigned long long __float2ull_rn(float v) { return emulator::nearest<unsigned long long>(v); }
inline int __double2int_rn(double v) { return emulator::nearest<int>(v); }
inline unsigned __double2uint_rn(double v) { return emulator::nearest<unsigned>(v); }
inline long long __double2ll_rn(double v) { return emulator::nearest<long long>(v); }
inline unsigned long long __double2ull_rn(double v) { return emulator::nearest<unsigned long long>(v); }
inline float __int2float_rn(int v) { return float(v); }
inline float __uint2float_rn(unsigned v) { return float(v); }
inline float __ll2float_rn(long long v) { return float(v); }
inline float __ull2float_rn(unsigned long long v) { return float(v); }
inline float __double2float_rn(double v) { return float(v); }
inline double __int2double_rn(int v) { return v; }
inline double __uint2double_rn(unsigned v) { return v; }
inline double __ll2double_rn(long long v) { return double(v); }
inline double __ull2double_rn(unsigned long long v) { return double(v); }

// A kernel that gives up: the launch fails, as on a device
[[noreturn]] inline void __trap() {
  emulator::report("__trap()");
  emulator::die();
}
