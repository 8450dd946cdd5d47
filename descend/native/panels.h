// Small matrix products from panels of 16 columns, and the softmax of a row with its slope.

#pragma once
#include <cmath>
#include <cstdint>

#include "vectors.h"

constexpr int64_t WIDE = 16;  // a panel is so many columns, dense: (depth, 16)

// c (M, 16) = a b, or c + a b. b is a panel; a (M, depth) has rows that are `step` apart, or columns if it is turned.
template <int M, bool TURNED>
static void micro(const float *a, int64_t step, const float *b, float *c, int64_t ldc, int64_t depth, bool add) {
  v8 sum[M][2] = {};
  for (int64_t l = 0; l < depth; l++) {
    const v8 b0 = at(b + l * WIDE), b1 = at(b + l * WIDE + 8);
    for (int m = 0; m < M; m++) {
      const float x = TURNED ? a[l * step + m] : a[m * step + l];
      sum[m][0] += x * b0;
      sum[m][1] += x * b1;
    }
  }
  for (int m = 0; m < M; m++)
    for (int n = 0; n < 2; n++) {
      v8 *to = (v8 *)(c + m * ldc + 8 * n);
      *to = add ? *to + sum[m][n] : sum[m][n];
    }
}

// a (rows, depth) times panels of (depth, columns), `deep` rows each, into c.
template <bool TURNED>
static void product(const float *a, int64_t step, const float *b, int64_t deep, float *c, int64_t ldc, int64_t rows,
                    int64_t depth, int64_t columns) {
  for (int64_t n = 0; n < columns; n += WIDE, b += deep * WIDE, c += WIDE) {
    const int64_t next = TURNED ? 1 : step;
    int64_t m = 0;
    for (; m + 6 <= rows; m += 6) micro<6, TURNED>(a + m * next, step, b, c + m * ldc, ldc, depth, TURNED);
    for (; m + 2 <= rows; m += 2) micro<2, TURNED>(a + m * next, step, b, c + m * ldc, ldc, depth, TURNED);
    for (; m < rows; m++) micro<1, TURNED>(a + m * next, step, b, c + m * ldc, ldc, depth, TURNED);
  }
}

static int64_t rounded(int64_t n) { return (n + WIDE - 1) / WIDE * WIDE; }

// x (rows, size) as panels of its columns (size / 16, rows, 16).
static void pack(const float *x, int64_t step, int64_t rows, int64_t size, float *to) {
  for (int64_t c = 0; c < size; c += WIDE)
    for (int64_t r = 0; r < rows; r++, to += WIDE)
      for (int64_t i = 0; i < WIDE; i++) to[i] = c + i < size ? x[r * step + c + i] : 0;
}

// x' (size, rows) as panels of its columns (rows / 16, size, 16), zeros where rows end.
static void pack_turned(const float *x, int64_t step, int64_t rows, int64_t size, float *to) {
  for (int64_t r = 0; r < rows; r += WIDE)
    for (int64_t c = 0; c < size; c++, to += WIDE)
      for (int64_t i = 0; i < WIDE; i++) to[i] = r + i < rows ? x[(r + i) * step + c] : 0;
}

static void softmax(float *x, int64_t n, int64_t padded, float scale, float *sum) {
  float top = x[0], all = 0;
  v8 tops = v8{} + top, sums = {};
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) tops = at(x + j) > tops ? at(x + j) : tops;
  for (; j < n; j++) top = x[j] > top ? x[j] : top;
  for (j = 0; j < 8; j++) top = tops[j] > top ? tops[j] : top;
  j = 0;
  for (; j + 8 <= n; j += 8) {
    const v8 e = exp((at(x + j) - top) * scale);
    *(v8 *)(x + j) = e;
    sums += e;
  }
  for (; j < n; j++) all += x[j] = std::exp((x[j] - top) * scale);
  all += total(sums);
  const float share = 1 / all;
  for (j = 0; j < n; j++) x[j] *= share;
  for (; j < padded; j++) x[j] = 0;
  *sum = top * scale + std::log(all);
}

// P and scale dS of one row, from its scores and from dY V'.
static void slopes(float *p, float *d, int64_t n, int64_t padded, float scale, float sum, float dot) {
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    const v8 e = exp(at(p + j) * scale - sum);
    *(v8 *)(p + j) = e;
    *(v8 *)(d + j) = e * (at(d + j) - dot) * scale;
  }
  for (; j < n; j++) {
    p[j] = std::exp(p[j] * scale - sum);
    d[j] = p[j] * (d[j] - dot) * scale;
  }
  for (; j < padded; j++) p[j] = d[j] = 0;
}
