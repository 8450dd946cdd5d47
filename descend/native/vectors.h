// Eight numbers at a time, in the compiler's own vectors: the same source for every processor.

#pragma once
#include <cstdint>
#include <cstring>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

typedef float v8 __attribute__((vector_size(32), aligned(4)));  // at any address
typedef float v4 __attribute__((vector_size(16), aligned(4)));
typedef float v16 __attribute__((vector_size(64), aligned(4)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef uint32_t u8 __attribute__((vector_size(32)));
typedef uint16_t h8 __attribute__((vector_size(16), aligned(2)));

struct half {  // bfloat16: the upper half of a float
  uint16_t bits;
};

static inline v8 at(const float *p) { return *(const v8 *)p; }
static inline v8 at(const half *p) { return (v8)(__builtin_convertvector(*(const h8 *)p, u8) << 16); }

// Floats whose upper halves are the nearest bfloat16 numbers, ties to even.
static inline u8 nearest(v8 x) { return (u8)x + 0x7fff + (((u8)x >> 16) & 1); }

static inline void put(float *p, v8 x) { *(v8 *)p = x; }
static inline void put(half *p, v8 x) {
#if defined(__AVX512BF16__) && defined(__AVX512VL__)
  *(h8 *)p = (h8)_mm256_cvtneps_pbh((__m256)x);
#else
  *(h8 *)p = __builtin_convertvector(nearest(x) >> 16, h8);
#endif
}

// The first n of eight, zeros after them.
template <class T>
static inline v8 some(const T *p, int64_t n) {
  T in[8] = {};
  std::memcpy(in, p, n * sizeof(T));
  return at(in);
}
template <class T>
static inline void put_some(T *p, v8 x, int64_t n) {
  T out[8];
  put(out, x);
  std::memcpy(p, out, n * sizeof(T));
}

static inline v16 at16(const float *p) { return *(const v16 *)p; }
static inline v16 some16(const float *p, int64_t n) {
  if (n == 16) return at16(p);
  float in[16] = {};
  std::memcpy(in, p, n * sizeof(float));
  return at16(in);
}
static inline void put_some16(float *p, v16 x, int64_t n) {
  if (n == 16)
    *(v16 *)p = x;
  else
    std::memcpy(p, &x, n * sizeof(float));
}

static inline float total(v8 a) { return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7])); }
static inline float total(v16 a) {
  v8 half[2];
  std::memcpy(half, &a, sizeof(a));
  const v8 b = half[0] + half[1];
  v4 quarter[2];
  std::memcpy(quarter, &b, sizeof(b));
  const v4 c = quarter[0] + quarter[1];
  return (c[0] + c[1]) + (c[2] + c[3]);
}

static inline float largest(v16 a) {
  v8 half[2];
  std::memcpy(half, &a, sizeof(a));
  const v8 b = half[0] > half[1] ? half[0] : half[1];
  v4 quarter[2];
  std::memcpy(quarter, &b, sizeof(b));
  const v4 c = quarter[0] > quarter[1] ? quarter[0] : quarter[1];
  const float x = c[0] > c[1] ? c[0] : c[1], y = c[2] > c[3] ? c[2] : c[3];
  return x > y ? x : y;
}

// e^x = 2^n e^r with |r| <= ln 2 / 2, and e^r by its series.
static inline v8 exp(v8 x) {
  x = x < -87.0f ? v8{} - 87.0f : x;
  x = x > 88.0f ? v8{} + 88.0f : x;
  const v8 big = v8{} + 12582912.0f, n = (x * 1.44269504f + big) - big;  // rounds to the nearest integer
  const v8 r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  v8 p = r / 5040 + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  const i8 power = (__builtin_convertvector(n, i8) + 127) << 23;
  return p * (v8)power;
}

static inline v8 tanh8(v8 x) {
  const v8 e = exp(2 * x), far = 1 - 2 / (e + 1), s = x * x;
  const v8 near = x * (1 + s * (-1.0f / 3 + s * (2.0f / 15 - s * (17.0f / 315))));
  return s < 0.01f ? near : far;
}
