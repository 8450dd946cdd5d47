// Small matrix products from panels of 16 columns, and the softmax of a row with its slope.
//
// A product has factors in float32 or bfloat16 and a sum in float32. In bfloat16 two neighbours along the depth lie side
// by side in one word, since processors multiply and add such pairs in one instruction.

#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "vectors.h"

constexpr int64_t WIDE = 16;  // a panel is so many columns, dense: (depth, 16), or (depth / 2, 16, 2) of pairs

static int64_t rounded(int64_t n) { return (n + WIDE - 1) / WIDE * WIDE; }
static int64_t paired(int64_t n) { return (n + 1) / 2 * 2; }

// c (M, 16 N) = a b, or c + a b. b is N panels, `apart` from each other; a (M, depth) has rows that are `step` apart, or
// columns if it is turned.
template <int M, int N, bool TURNED>
static void micro(const float *a, int64_t step, const float *b, int64_t apart, float *c, int64_t ldc, int64_t depth) {
  v8 sum[M][2 * N] = {};
  for (int64_t l = 0; l < depth; l++) {
    v8 right[2 * N];
    for (int n = 0; n < 2 * N; n++) right[n] = at(b + n / 2 * apart + l * WIDE + n % 2 * 8);
    for (int m = 0; m < M; m++) {
      const float x = TURNED ? a[l * step + m] : a[m * step + l];
      for (int n = 0; n < 2 * N; n++) sum[m][n] += x * right[n];
    }
  }
  for (int m = 0; m < M; m++)
    for (int n = 0; n < 2 * N; n++) {
      float *to = c + m * ldc + 8 * n;
      put(to, TURNED ? at(to) + sum[m][n] : sum[m][n]);
    }
}

#ifdef __AVX512BF16__
typedef __m512 v16;
static inline v16 pairs(const half *p) { return _mm512_loadu_ps(p); }
static inline v16 pair(const half *p) {
  int32_t both;
  std::memcpy(&both, p, sizeof both);
  return (v16)_mm512_set1_epi32(both);
}
static inline v16 add_products(v16 sum, v16 a, v16 b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
#else
typedef float v16 __attribute__((vector_size(64), aligned(4)));
typedef uint32_t u16 __attribute__((vector_size(64)));
static inline v16 pairs(const half *p) { return *(const v16 *)p; }
static inline v16 pair(const half *p) {
  uint32_t both;
  std::memcpy(&both, p, sizeof both);
  return (v16)(u16{} + both);
}
static inline v16 add_products(v16 sum, v16 a, v16 b) {
  const u16 high = u16{} + 0xffff0000u;
  return sum + (v16)((u16)a << 16) * (v16)((u16)b << 16) + (v16)((u16)a & high) * (v16)((u16)b & high);
}
#endif

// The same in bfloat16; a turned one has its rows in pairs, as `braid` makes them.
template <int M, int N, bool TURNED>
static void micro(const half *a, int64_t step, const half *b, int64_t apart, float *c, int64_t ldc, int64_t depth) {
  v16 sum[M][N] = {};
  for (int64_t l = 0; l < depth; l += 2) {
    v16 right[N];
    for (int n = 0; n < N; n++) right[n] = pairs(b + n * apart + l * WIDE);
    for (int m = 0; m < M; m++) {
      const v16 x = pair(TURNED ? a + l * step + 2 * m : a + m * step + l);
      for (int n = 0; n < N; n++) sum[m][n] = add_products(sum[m][n], x, right[n]);
    }
  }
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      float *to = c + m * ldc + WIDE * n;
      v16 before;
      std::memcpy(&before, to, sizeof before);
      before = TURNED ? before + sum[m][n] : sum[m][n];
      std::memcpy(to, &before, sizeof before);
    }
}

template <int N, bool TURNED, class T>
static void strip(const T *a, int64_t step, const T *b, int64_t apart, float *c, int64_t ldc, int64_t rows, int64_t depth) {
  const int64_t next = !TURNED ? step : sizeof(T) == 2 ? 2 : 1;
  constexpr int TALL = N == 2 ? 12 : 6;
  int64_t m = 0;
  if (N == 2)
    for (; m + TALL <= rows; m += TALL) micro<TALL, N, TURNED>(a + m * next, step, b, apart, c + m * ldc, ldc, depth);
  for (; m + 6 <= rows; m += 6) micro<6, N, TURNED>(a + m * next, step, b, apart, c + m * ldc, ldc, depth);
  for (; m + 2 <= rows; m += 2) micro<2, N, TURNED>(a + m * next, step, b, apart, c + m * ldc, ldc, depth);
  for (; m < rows; m++) micro<1, N, TURNED>(a + m * next, step, b, apart, c + m * ldc, ldc, depth);
}

// a (rows, depth) times panels of (depth, columns), `deep` rows each, into c; a turned product is added to c.
template <bool TURNED>
static void product(const float *a, int64_t step, const float *b, int64_t deep, float *c, int64_t ldc, int64_t rows,
                    int64_t depth, int64_t columns) {
  for (int64_t n = 0; n < columns; n += WIDE)
    strip<1, TURNED>(a, step, b + n * deep, 0, c + n, ldc, rows, depth);
}
template <bool TURNED>
static void product(const half *a, int64_t step, const half *b, int64_t deep, float *c, int64_t ldc, int64_t rows,
                    int64_t depth, int64_t columns) {
  deep = paired(deep), depth = paired(depth);
  int64_t n = 0;
  for (; n + 2 * WIDE <= columns; n += 2 * WIDE)
    strip<2, TURNED>(a, step, b + n * deep, WIDE * deep, c + n, ldc, rows, depth);
  for (; n < columns; n += WIDE) strip<1, TURNED>(a, step, b + n * deep, 0, c + n, ldc, rows, depth);
}

// x (rows, size) as panels of its columns (size / 16, rows, 16), zeros where it ends.
static void pack(const float *x, int64_t step, int64_t rows, int64_t size, float *to) {
  for (int64_t c = 0; c < size; c += WIDE)
    for (int64_t r = 0; r < rows; r++, to += WIDE)
      for (int64_t i = 0; i < WIDE; i++) to[i] = c + i < size ? x[r * step + c + i] : 0;
}
static void pack(const half *x, int64_t step, int64_t rows, int64_t size, half *to) {
  for (int64_t c = 0; c < size; c += WIDE)
    for (int64_t r = 0; r < rows; r += 2, to += 2 * WIDE) {
      const int64_t count = size - c < WIDE ? size - c : WIDE;
      half a[WIDE] = {}, b[WIDE] = {};
      std::memcpy(a, x + r * step + c, count * sizeof(half));
      if (r + 1 < rows) std::memcpy(b, x + r * step + step + c, count * sizeof(half));
      uint32_t words[WIDE];
      for (int i = 0; i < WIDE; i++) words[i] = a[i].bits | (uint32_t)b[i].bits << 16;
      std::memcpy(to, words, sizeof words);
    }
}

// x' (size, rows) as panels of its columns (rows / 16, size, 16), zeros where rows end.
static void pack_turned(const float *x, int64_t step, int64_t rows, int64_t size, float *to) {
  for (int64_t r = 0; r < rows; r += WIDE)
    for (int64_t c = 0; c < size; c++, to += WIDE)
      for (int64_t i = 0; i < WIDE; i++) to[i] = r + i < rows ? x[(r + i) * step + c] : 0;
}
static void pack_turned(const half *x, int64_t step, int64_t rows, int64_t size, half *to) {
  for (int64_t r = 0; r < rows; r += WIDE)
    for (int64_t c = 0; c < size; c += 2, to += 2 * WIDE)
      for (int64_t i = 0; i < WIDE; i++)
        r + i < rows ? std::memcpy(to + 2 * i, x + (r + i) * step + c, 4) : std::memset(to + 2 * i, 0, 4);
}

// Scores (rows, s) as the left factor of a product: as they are, or rounded. `room` is theirs.
static const float *as_left(const std::vector<float> &x, int64_t, int64_t, int64_t, std::vector<float> &) { return x.data(); }
static const half *as_left(const std::vector<float> &x, int64_t rows, int64_t s, int64_t used, std::vector<half> &room) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < used; j += 8) put(&room[r * s + j], at(&x[r * s + j]));
  return room.data();
}

// The same for a turned product: two rows woven into one.
static const float *braid(const std::vector<float> &x, int64_t, int64_t, int64_t, std::vector<float> &) { return x.data(); }
static const half *braid(const std::vector<float> &x, int64_t rows, int64_t s, int64_t used, std::vector<half> &room) {
  for (int64_t r = 0; r < rows; r += 2)
    for (int64_t j = 0; j < used; j += 8) {
      const v8 even = at(&x[r * s + j]), odd = r + 1 < rows ? at(&x[(r + 1) * s + j]) : v8{};
      const u8 words = nearest(even) >> 16 | (nearest(odd) & 0xffff0000u);
      std::memcpy(&room[r * s + 2 * j], &words, sizeof words);
    }
  return room.data();
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
    put(x + j, e);
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
    put(p + j, e);
    put(d + j, e * (at(d + j) - dot) * scale);
  }
  for (; j < n; j++) {
    p[j] = std::exp(p[j] * scale - sum);
    d[j] = p[j] * (d[j] - dot) * scale;
  }
  for (; j < padded; j++) p[j] = d[j] = 0;
}

// The dot product of two rows.
template <class T>
static float dot(const T *a, const T *b, int64_t n) {
  v8 sum = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) sum += at(a + i) * at(b + i);
  if (i < n) sum += some(a + i, n - i) * some(b + i, n - i);
  return total(sum);
}

// times x, a row of n, into T.
template <class T>
static void put_row(T *to, const float *x, int64_t n, float times) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) put(to + i, times * at(x + i));
  if (i < n) put_some(to + i, times * some(x + i, n - i), n - i);
}
