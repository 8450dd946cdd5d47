// One step of decoding with a transformer: every sequence reads one more token.
//
//     x = x + Wo attend(Wq n, Wk n, Wv n, cache),  n = norm1(x)        in every block
//     x = x + Wd f(Wu n)  or  x + Wd (f(Wg n) * Wu n),  n = norm2(x)
//     logits = U norm(x)
//
// With few rows a product is bound by reading W once, not by arithmetic, and what surrounds it counts: hence one call
// for the whole step and one team of threads. Every sum is made by one thread in one order, so the result does not
// depend on their number, nor a row's on how many others there are. The structs are mirrored in decoding.py.

#include <cmath>

#include "int8.h"
#include "vectors.h"

struct Norm {
  const float *w, *b;  // no b: RMS norm
  double eps;
};

struct Linear {
  const float *w, *b;  // (out, in), (out) or none
  int64_t in, out;
  const uint8_t *codes;  // where there are some they are read, with their steps, and not w (int8.h)
  const uint16_t *steps;
};

struct Block {
  Norm norm_1, norm_2;
  Linear q, k, v, out, gate, up, down;  // no gate.w: the plain feed-forward form
};

struct Model {
  int64_t depth, width, heads, kv_heads, head_size, hidden, activation;  // 0 GELU by tanh, 1 GELU by erf, 2 SiLU, 3 ReLU
  const Block *blocks;
  Norm norm;
  Linear head;
};

struct Step {
  int64_t rows, places, length;  // the cache (depth, 2, places, kv_heads, length, head_size) has room for more rows
  const int64_t *place, *used;   // of each row: where in the cache it is, and its tokens there before this one
  const int64_t *first;          // the first token that each row sees, or none: all
  const float *cos, *sin;        // (rows, head_size / 2) for rotary positions, or none
  float *x, *cache, *room;       // x (rows, width) in and out
  float *logits;                 // (rows, vocab)
};

// The functions of eight numbers at a time, also of the last few: a number does not depend on where it lies.
static void activate(float *x, int64_t n, int64_t kind) {
  if (kind == 1)
    for (int64_t i = 0; i < n; i++) x[i] = 0.5f * x[i] * (1 + std::erf(x[i] * 0.70710678f));
  for (int64_t i = 0; i < n && kind != 1; i += 8) {
    v8 a = i + 8 <= n ? at(x + i) : some(x + i, n - i);
    if (kind == 0) a = a / (1 + exp(-1.595769122f * (a + 0.044715f * a * a * a)));  // 2 sqrt(2/pi)
    if (kind == 2) a = a / (1 + exp(-a));
    if (kind == 3) a = a > 0 ? a : v8{};
    i + 8 <= n ? put(x + i, a) : put_some(x + i, a, n - i);
  }
}

#ifdef __AVX512F__
constexpr int64_t OUT = 6, ROWS = 4;  // 24 sums at a time: the processor has 32 registers
#else
constexpr int64_t OUT = 3, ROWS = 2;  // 12 of 16
#endif

// O outputs, from the o-th on, of R rows of x: y (R, out) = x W' + b, or y + x W' + b. A product is the sum of sixteen
// sums, of every sixteenth number, whatever O and R are: the result of a row does not depend on how many there are.
template <int O, int R>
static void tile(const Linear &f, const float *x, int64_t o, float *y, bool add) {
  const float *w = f.w + o * f.in;
  v16 sum[O][R] = {};
  int64_t i = 0;
  for (; i + 16 <= f.in; i += 16)
    for (int p = 0; p < O; p++) {
      const v16 a = at16(w + p * f.in + i);
      if (O > 1) __builtin_prefetch(w + (p + O) * f.in + i);
      for (int r = 0; r < R; r++) sum[p][r] += a * at16(x + r * f.in + i);
    }
  for (int p = 0; p < O && i < f.in; p++)
    for (int r = 0; r < R; r++) sum[p][r] += some16(w + p * f.in + i, f.in - i) * some16(x + r * f.in + i, f.in - i);
  for (int r = 0; r < R; r++)
    for (int p = 0; p < O; p++) {
      float &to = y[r * f.out + o + p];
      to = total(sum[p][r]) + (f.b ? f.b[o + p] : 0) + (add ? to : 0);
    }
}

template <int O>
static void outputs(const Linear &f, const float *x, int64_t rows, int64_t o, float *y, bool add) {
  int64_t r = 0;
  for (; r + ROWS <= rows; r += ROWS) tile<O, ROWS>(f, x + r * f.in, o, y + r * f.out, add);
  const float *last = x + r * f.in;
  float *to = y + r * f.out;
  if (rows - r == 3) tile<O, 3>(f, last, o, to, add);
  if (rows - r == 2) tile<O, 2>(f, last, o, to, add);
  if (rows - r == 1) tile<O, 1>(f, last, o, to, add);
}

// y = x W' + b, or y + x W' + b, by the team. A single row reads W in the order of the memory.
static void linear(const Linear &f, const float *x, int64_t rows, float *y, bool add) {
  if (f.codes) return coded_linear(f.codes, f.steps, f.b, f.in, f.out, x, rows, y, add);
#pragma omp for schedule(static) nowait
  for (int64_t n = 0; n < (f.out + OUT - 1) / OUT; n++) {
    const int64_t o = OUT * n, end = o + OUT < f.out ? o + OUT : f.out;
    if (rows > 1 && end == o + OUT)
      outputs<OUT>(f, x, rows, o, y, add);
    else
      for (int64_t p = o; p < end; p++) outputs<1>(f, x, rows, p, y, add);
  }
}

static void norm(const Norm &f, const float *x, float *y, int64_t rows, int64_t d) {
#pragma omp for schedule(static) nowait
  for (int64_t r = 0; r < rows; r++) {
    const float *a = x + r * d;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < d && f.b; i++) mean += a[i];
    mean /= d;
    for (int64_t i = 0; i < d; i++) square += (a[i] - mean) * (a[i] - mean);
    const float m = mean, scale = 1 / std::sqrt(square / d + f.eps);
    for (int64_t i = 0; i < d; i++) y[r * d + i] = (a[i] - m) * scale * f.w[i] + (f.b ? f.b[i] : 0);
  }
}

static void rotate(float *x, const float *cos, const float *sin, int64_t half) {
  for (int64_t i = 0; i < half; i++) {
    const float a = x[i], b = x[i + half];
    x[i] = a * cos[i] - b * sin[i];
    x[i + half] = b * cos[i] + a * sin[i];
  }
}

// K scores, q k_j * scale for the keys from j on.
template <int K>
static void score(const float *q, const float *keys, float scale, int64_t k, float *a) {
  v8 p[K] = {};
  for (int64_t i = 0; i < k; i += 8)
    for (int j = 0; j < K; j++) p[j] += at(q + i) * at(keys + j * k + i);
  for (int j = 0; j < K; j++) a[j] = total(p[j]) * scale;
}

// y = share * sum_j a_j v_j, 8 N of its numbers.
template <int N>
static void mix(const float *a, const float *values, float share, int64_t from, int64_t s, int64_t k, float *y) {
  v8 sum[N] = {};
  for (int64_t j = from; j < s; j++)
    for (int i = 0; i < N; i++) sum[i] += a[j] * at(values + j * k + 8 * i);
  for (int i = 0; i < N; i++) put(y + 8 * i, sum[i] * share);
}

// softmax(q K' / sqrt(k)) V over the tokens from..s-1, without a second pass over the scores' room.
static void attend(const float *q, const float *keys, const float *values, float *a, float *y, int64_t from, int64_t s,
                   int64_t k) {
  const float scale = 1 / std::sqrt((float)k);
  int64_t j = from;
  for (; j + 4 <= s; j += 4) score<4>(q, keys + j * k, scale, k, a + j);
  for (; j < s; j++) score<1>(q, keys + j * k, scale, k, a + j);
  float top = -INFINITY;
  for (j = from; j < s; j++) top = a[j] > top ? a[j] : top;
  float sum = 0;
  v8 sums = {};
  for (j = from; j + 8 <= s; j += 8) {
    const v8 e = exp(at(a + j) - top);
    *(v8 *)(a + j) = e;
    sums += e;
  }
  for (; j < s; j++) sum += a[j] = std::exp(a[j] - top);
  sum += total(sums);
  int64_t i = 0;
  for (; i + 64 <= k; i += 64) mix<8>(a, values + i, 1 / sum, from, s, k, y + i);
  for (; i + 32 <= k; i += 32) mix<4>(a, values + i, 1 / sum, from, s, k, y + i);
  for (; i < k; i += 8) mix<1>(a, values + i, 1 / sum, from, s, k, y + i);
}

// A sequence and a key head is one piece of work: its key and value join the cache, then its queries look.
static void look(const Model &m, const Step &s, int64_t layer, float *q, float *k, float *v, float *scores, float *y) {
  const int64_t size = m.head_size, group = m.heads / m.kv_heads, all = s.places * m.kv_heads * s.length * size;
#pragma omp for schedule(static) nowait
  for (int64_t n = 0; n < s.rows * m.kv_heads; n++) {
    const int64_t row = n / m.kv_heads, half = size / 2, used = s.used[row];
    const int64_t place = s.place[row] * m.kv_heads + n % m.kv_heads;
    float *keys = s.cache + 2 * layer * all + place * s.length * size, *values = keys + all;
    if (s.cos) rotate(k + n * size, s.cos + row * half, s.sin + row * half, half);
    for (int64_t i = 0; i < size; i++) {
      keys[used * size + i] = k[n * size + i];
      values[used * size + i] = v[n * size + i];
    }
    for (int64_t h = n * group; h < n * group + group; h++) {
      if (s.cos) rotate(q + h * size, s.cos + row * half, s.sin + row * half, half);
      attend(q + h * size, keys, values, scores + n * s.length, y + h * size, s.first ? s.first[row] : 0, used + 1, size);
    }
  }
}

static void feed(const Model &m, const Block &f, const Step &s, const float *n, float *u, float *g) {
  linear(f.up, n, s.rows, u, false);
  if (f.gate.w) linear(f.gate, n, s.rows, g, false);
#pragma omp barrier
  const int64_t piece = 64, all = s.rows * m.hidden;
#pragma omp for schedule(static) nowait
  for (int64_t i = 0; i < all; i += piece) {
    const int64_t count = all - i < piece ? all - i : piece;
    activate((f.gate.w ? g : u) + i, count, m.activation);
    for (int64_t j = i; f.gate.w && j < i + count; j++) u[j] *= g[j];
  }
}

// Numbers of room that a step of so many rows needs.
extern "C" int64_t room(const Model *m, int64_t rows, int64_t length) {
  const int64_t heads = (2 * m->heads + 2 * m->kv_heads) * m->head_size;
  return rows * (m->width + heads + 2 * m->hidden + m->kv_heads * length);
}

extern "C" void step(const Model *model, const Step *at, int threads) {
  const Model &m = *model;
  const Step &s = *at;
  const int64_t r = s.rows, inner = m.heads * m.head_size, kv = m.kv_heads * m.head_size;
  float *n = s.room, *q = n + r * m.width, *k = q + r * inner, *v = k + r * kv, *y = v + r * kv, *u = y + r * inner,
        *g = u + r * m.hidden, *scores = g + r * m.hidden;
#pragma omp parallel num_threads(threads)
  {
    for (int64_t l = 0; l < m.depth; l++) {
      const Block &f = m.blocks[l];
      norm(f.norm_1, s.x, n, r, m.width);
#pragma omp barrier
      linear(f.q, n, r, q, false);
      linear(f.k, n, r, k, false);
      linear(f.v, n, r, v, false);
#pragma omp barrier
      look(m, s, l, q, k, v, scores, y);
#pragma omp barrier
      linear(f.out, y, r, s.x, true);
#pragma omp barrier
      norm(f.norm_2, s.x, n, r, m.width);
#pragma omp barrier
      feed(m, f, s, n, u, g);
#pragma omp barrier
      linear(f.down, u, r, s.x, true);
#pragma omp barrier
    }
    norm(m.norm, s.x, n, r, m.width);
#pragma omp barrier
    linear(m.head, n, r, s.logits, false);
  }
}
