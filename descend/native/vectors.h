// Eight numbers at a time, in the compiler's own vectors: the same source for every processor.

#pragma once
#include <cstdint>

typedef float v8 __attribute__((vector_size(32), aligned(4)));  // at any address
typedef int32_t i8 __attribute__((vector_size(32)));

static inline v8 at(const float *p) { return *(const v8 *)p; }

static inline float total(v8 a) { return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7])); }

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
