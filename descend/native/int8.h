// Products with weights in codes of 8 bits: y = x W', W = (codes - 128) * steps, with a step for 32 neighbours of a row.
//
// x is rounded too, 32 numbers to a step: x = q * scale, q = -127..127. What is summed within a group are whole numbers,
// so exact; their sums are added up in float32 in the order of the groups, whatever the threads, rows and panels are:
//
//     y_o = sum_g  steps[o, g] scale[g] ( sum_i codes[o, i] q[i]  -  128 sum_i q[i] )
//
// Codes are stored + 128, since processors multiply unsigned by signed bytes. A panel is 16 outputs side by side, four
// inputs of each in a word: (panel, in / 4, 16, 4), and the steps of a group lie together, in half precision: (panel,
// in / 32, 16). A single row is bound by reading all this once, so a panel is read from its beginning to its end.

#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "vectors.h"
#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

constexpr int64_t PANEL = 16, GROUP = 32;

// 32 numbers as codes, and the sum of these; returns the step. Halves are rounded to even.
static float round_group(const float *x, int8_t *codes, int32_t *sum) {
  const v16 a = at16(x), b = at16(x + 16), lower = a > -a ? a : -a, upper = b > -b ? b : -b;
  const float most = largest(lower > upper ? lower : upper);
  const float times = most > 0 ? 127 / most : 0;
#ifdef __AVX512VNNI__
  const __m512i p = _mm512_cvtps_epi32((__m512)(a * times)), q = _mm512_cvtps_epi32((__m512)(b * times));
  _mm_storeu_si128((__m128i *)codes, _mm512_cvtepi32_epi8(p));
  _mm_storeu_si128((__m128i *)(codes + 16), _mm512_cvtepi32_epi8(q));
  *sum = _mm512_reduce_add_epi32(_mm512_add_epi32(p, q));
#else
  *sum = 0;
  for (int64_t i = 0; i < GROUP; i++) *sum += codes[i] = (int8_t)std::nearbyintf(x[i] * times);
#endif
  return most / 127;
}

typedef uint16_t halves16 __attribute__((vector_size(32), aligned(2)));
typedef uint32_t words16 __attribute__((vector_size(64)));

// Sixteen numbers above 0 in half precision: their bits are those of a float that is 2^112 times smaller.
static inline v16 widen(const uint16_t *p) {
  return (v16)(__builtin_convertvector(*(const halves16 *)p, words16) << 13) * 0x1p112f;
}

struct Rounded {  // rows of x in codes
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> offsets;  // -128 sum_i q[i] of each group

  void take(const float *x, int64_t rows, int64_t in) {
    const int64_t groups = rows * in / GROUP;
    if ((int64_t)scales.size() < groups) codes.resize(groups * GROUP), scales.resize(groups), offsets.resize(groups);
    for (int64_t g = 0; g < groups; g++) {
      int32_t sum;
      scales[g] = round_group(x + g * GROUP, &codes[g * GROUP], &sum);
      offsets[g] = -128 * sum;
    }
  }
};

#ifdef __AVX512VNNI__
typedef __m512i sums16;
static inline sums16 begin_sums(int32_t x) { return _mm512_set1_epi32(x); }
static inline sums16 add_codes(sums16 sum, const uint8_t *w, const int8_t *q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(w), _mm512_set1_epi32(four));
}
static inline v16 as_floats(sums16 sum) { return (v16)_mm512_cvtepi32_ps(sum); }
#else
typedef int32_t sums16 __attribute__((vector_size(64)));
static inline sums16 begin_sums(int32_t x) { return sums16{} + x; }
static inline sums16 add_codes(sums16 sum, const uint8_t *w, const int8_t *q) {
  for (int o = 0; o < PANEL; o++)
    sum[o] += w[4 * o] * q[0] + w[4 * o + 1] * q[1] + w[4 * o + 2] * q[2] + w[4 * o + 3] * q[3];
  return sum;
}
static inline v16 as_floats(sums16 sum) { return __builtin_convertvector(sum, v16); }
#endif

// P panels from the n-th on for R rows from the r-th on: y (rows, out) = x W' + b, or y + x W' + b.
template <int P, int R>
static void panels(const uint8_t *codes, const uint16_t *steps, const float *b, int64_t in, int64_t out, const Rounded &x,
                   int64_t n, int64_t r, float *y, bool add) {
  const int64_t groups = in / GROUP;
  v16 sum[P][R] = {};
  for (int64_t g = 0; g < groups; g++) {
    sums16 whole[P][R];
    for (int p = 0; p < P; p++)
      for (int i = 0; i < R; i++) whole[p][i] = begin_sums(x.offsets[(r + i) * groups + g]);
    for (int64_t k = g * GROUP; k < (g + 1) * GROUP; k += 4)
      for (int p = 0; p < P; p++)
        for (int i = 0; i < R; i++)
          whole[p][i] = add_codes(whole[p][i], codes + ((n + p) * in + k) * PANEL, &x.codes[(r + i) * in + k]);
    for (int p = 0; p < P; p++) {
      const v16 step = widen(steps + ((n + p) * groups + g) * PANEL);
      for (int i = 0; i < R; i++) sum[p][i] += as_floats(whole[p][i]) * (step * x.scales[(r + i) * groups + g]);
    }
  }
  for (int p = 0; p < P; p++)
    for (int i = 0; i < R; i++) {
      const int64_t o = (n + p) * PANEL, count = out - o < PANEL ? out - o : PANEL;
      float *to = y + (r + i) * out + o;
      v16 found = sum[p][i];
      if (b) found += some16(b + o, count);
      if (add) found += some16(to, count);
      put_some16(to, found, count);
    }
}

// All rows of P panels.
template <int P>
static void rows_of(const uint8_t *codes, const uint16_t *steps, const float *b, int64_t in, int64_t out, const Rounded &x,
                    int64_t n, int64_t rows, float *y, bool add) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) panels<P, 4>(codes, steps, b, in, out, x, n, r, y, add);
  for (; r < rows; r++) panels<P, 1>(codes, steps, b, in, out, x, n, r, y, add);
}

// y = x W' + b, or y + x W' + b, by the team; every thread rounds x for itself, which costs less than to wait.
static void coded_linear(const uint8_t *codes, const uint16_t *steps, const float *b, int64_t in, int64_t out, const float *x,
                         int64_t rows, float *y, bool add) {
  static thread_local Rounded own;
  Rounded &rounded = own;
  rounded.take(x, rows, in);
  const int64_t all = (out + PANEL - 1) / PANEL;
  if (rows == 1) {
#pragma omp for schedule(static) nowait
    for (int64_t n = 0; n < all; n++) panels<1, 1>(codes, steps, b, in, out, rounded, n, 0, y, add);
  } else {
#pragma omp for schedule(static) nowait
    for (int64_t n = 0; n < (all + 1) / 2; n++) {
      if (2 * n + 2 <= all)
        rows_of<2>(codes, steps, b, in, out, rounded, 2 * n, rows, y, add);
      else
        rows_of<1>(codes, steps, b, in, out, rounded, 2 * n, rows, y, add);
    }
  }
}
