// One step of decoding with a transformer: every sequence reads one more token.
//
//     x = x + Wo attend(Wq n, Wk n, Wv n, cache),  n = norm1(x)        in every block
//     x = x + Wd f(Wu n)  or  x + Wd (f(Wg n) * Wu n),  n = norm2(x)
//     logits = U norm(x)
//
// With few rows a product is bound by reading W once, not by arithmetic, and what surrounds it counts: hence one call
// for the whole step and one team of threads. Every sum is made by one thread in one order, so the result does not
// depend on their number. The structs are mirrored in decoding.py.

#include <cmath>

#include "vectors.h"

struct Norm {
  const float *w, *b;  // no b: RMS norm
  double eps;
};

struct Linear {
  const float *w, *b;  // (out, in), (out) or none
  int64_t in, out;
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
  int64_t rows, used, length;  // used: tokens in the cache before this one; length: its room
  const int64_t *first;        // the first token of each row that is no padding, or none
  const float *cos, *sin;      // (rows, head_size / 2) for rotary positions, or none
  float *x, *cache, *room;     // x (rows, width) in and out; cache (depth, 2, rows, kv_heads, length, head_size)
  float *logits;               // (rows, vocab)
};

static void activate(float *x, int64_t n, int64_t kind) {
  int64_t i = 0;
  for (; i + 8 <= n && kind != 1; i += 8) {
    v8 a = at(x + i);
    if (kind == 0) a = a / (1 + exp(-1.595769122f * (a + 0.044715f * a * a * a)));  // 2 sqrt(2/pi)
    if (kind == 2) a = a / (1 + exp(-a));
    if (kind == 3) a = a > 0 ? a : v8{};
    *(v8 *)(x + i) = a;
  }
  for (; i < n; i++) {
    const float a = x[i];
    if (kind == 0) x[i] = a / (1 + std::exp(-1.595769122f * (a + 0.044715f * a * a * a)));
    if (kind == 1) x[i] = 0.5f * a * (1 + std::erf(a * 0.70710678f));
    if (kind == 2) x[i] = a / (1 + std::exp(-a));
    if (kind == 3) x[i] = a > 0 ? a : 0;
  }
}

// One row of x and one of W, read in the order of the memory.
static float dot(const float *x, const float *w, int64_t in) {
  v8 sum[4] = {};
  int64_t i = 0;
  for (; i + 32 <= in; i += 32)
    for (int n = 0; n < 4; n++) sum[n] += at(w + i + 8 * n) * at(x + i + 8 * n);
  float s = total((sum[0] + sum[1]) + (sum[2] + sum[3]));
  for (; i < in; i++) s += w[i] * x[i];
  return s;
}

// Two to four rows: the sums run along the rows of W.
template <int O, int R>
static void along(const float *x, const float *w, int64_t in, float *y) {
  v8 sum[O][R] = {};
  int64_t i = 0;
  for (; i + 8 <= in; i += 8)
    for (int o = 0; o < O; o++) {
      const v8 a = at(w + o * in + i);
      __builtin_prefetch(w + (o + O) * in + i);
      for (int r = 0; r < R; r++) sum[o][r] += a * at(x + r * in + i);
    }
  for (int r = 0; r < R; r++)
    for (int o = 0; o < O; o++) {
      y[r * O + o] = total(sum[o][r]);
      for (int64_t j = i; j < in; j++) y[r * O + o] += w[o * in + j] * x[r * in + j];
    }
}

// More rows: x is turned, t (in, 8 V), and a number of W meets 8 V rows of x at once.
template <int O, int V>
static void across(const float *t, const float *w, int64_t in, int64_t rows, float *y) {
  v8 sum[O][V] = {};
  for (int64_t from = 0; from < in; from += 16) {
    for (int o = 0; o < O; o++) __builtin_prefetch(w + (o + O) * in + from);
    for (int64_t i = from; i < in && i < from + 16; i++)
      for (int o = 0; o < O; o++)
        for (int v = 0; v < V; v++) sum[o][v] += w[o * in + i] * at(t + (i * V + v) * 8);
  }
  for (int64_t r = 0; r < rows; r++)
    for (int o = 0; o < O; o++) y[r * O + o] = sum[o][r / 8][r % 8];
}

// O outputs, from the o-th on, of up to 16 rows from the r-th on: y (rows, O).
template <int O>
static void tile(const Linear &f, const float *x, const float *t, int64_t rows, int64_t r, int64_t o, float *y) {
  const float *w = f.w + o * f.in;
  const int64_t left = rows - r;
  for (int p = 0; p < O && rows == 1; p++) y[p] = dot(x, w + p * f.in, f.in);
  if (rows == 1) return;
  if (rows == 2) return along<O, 2>(x, w, f.in, y);
  if (rows <= 4) {  // 12 sums at a time: the processor has 16 registers for them
    constexpr int H = O > 1 ? O / 2 : 1;
    float part[4 * H];
    for (int p = 0; p < O; p += H) {
      rows == 3 ? along<H, 3>(x, w + p * f.in, f.in, part) : along<H, 4>(x, w + p * f.in, f.in, part);
      for (int64_t n = 0; n < rows; n++)
        for (int h = 0; h < H; h++) y[n * O + p + h] = part[n * H + h];
    }
    return;
  }
  left > 8 ? across<O, 2>(t + r * f.in, w, f.in, left < 16 ? left : 16, y)
           : across<O, 1>(t + r * f.in, w, f.in, left, y);
}

template <int O>
static void outputs(const Linear &f, const float *x, const float *t, int64_t rows, int64_t o, float *y, bool add) {
  float part[16 * O];
  for (int64_t r = 0; r < rows; r += 16) {
    tile<O>(f, x, t, rows, r, o, part);
    for (int64_t n = r; n < rows && n < r + 16; n++)
      for (int64_t p = 0; p < O; p++) {
        float &to = y[n * f.out + o + p];
        to = part[(n - r) * O + p] + (f.b ? f.b[o + p] : 0) + (add ? to : 0);
      }
  }
}

// y = x W' + b, or y + x W' + b, by the team; x as it lies for up to four rows, else turned in t.
static void linear(const Linear &f, const float *x, const float *t, int64_t rows, float *y, bool add) {
  constexpr int64_t O = 6;
#pragma omp for schedule(static) nowait
  for (int64_t n = 0; n < (f.out + O - 1) / O; n++) {
    if (O * n + O <= f.out)
      outputs<O>(f, x, t, rows, O * n, y, add);
    else
      for (int64_t o = O * n; o < f.out; o++) outputs<1>(f, x, t, rows, o, y, add);
  }
}

static void turn(const float *x, float *t, int64_t rows, int64_t in) {
  if (rows <= 4) return;
#pragma omp barrier
#pragma omp for schedule(static) nowait
  for (int64_t i = 0; i < in; i++)
    for (int64_t r = 0; r < rows; r++) {
      const int64_t c = r / 16 * 16, lanes = rows - c > 8 ? 16 : 8;
      t[c * in + i * lanes + r - c] = x[r * in + i];
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

// softmax(q K' / sqrt(k)) V over the tokens from..s-1, without a second pass over the scores' room.
static void attend(const float *q, const float *keys, const float *values, float *a, float *y, int64_t from, int64_t s,
                   int64_t k) {
  const float scale = 1 / std::sqrt((float)k);
  float top = -INFINITY;
  for (int64_t j = from; j < s; j++) {
    v8 p = {};
    for (int64_t i = 0; i < k; i += 8) p += at(q + i) * at(keys + j * k + i);
    a[j] = total(p) * scale;
    top = a[j] > top ? a[j] : top;
  }
  float sum = 0;
  int64_t j = from;
  v8 sums = {};
  for (; j + 8 <= s; j += 8) {
    const v8 e = exp(at(a + j) - top);
    *(v8 *)(a + j) = e;
    sums += e;
  }
  for (; j < s; j++) sum += a[j] = std::exp(a[j] - top);
  sum += total(sums);
  for (int64_t i = 0; i < k; i += 8) *(v8 *)(y + i) = v8{};
  for (j = from; j < s; j++) {
    const float p = a[j] / sum;
    for (int64_t i = 0; i < k; i += 8) *(v8 *)(y + i) += p * at(values + j * k + i);
  }
}

// A sequence and a key head is one piece of work: its key and value join the cache, then its queries look.
static void look(const Model &m, const Step &s, int64_t layer, float *q, float *k, float *v, float *scores, float *y) {
  const int64_t size = m.head_size, group = m.heads / m.kv_heads, all = s.rows * m.kv_heads * s.length * size;
#pragma omp for schedule(static) nowait
  for (int64_t n = 0; n < s.rows * m.kv_heads; n++) {
    const int64_t row = n / m.kv_heads, half = size / 2;
    float *keys = s.cache + 2 * layer * all + n * s.length * size, *values = keys + all;
    if (s.cos) rotate(k + n * size, s.cos + row * half, s.sin + row * half, half);
    for (int64_t i = 0; i < size; i++) {
      keys[s.used * size + i] = k[n * size + i];
      values[s.used * size + i] = v[n * size + i];
    }
    for (int64_t h = n * group; h < n * group + group; h++) {
      if (s.cos) rotate(q + h * size, s.cos + row * half, s.sin + row * half, half);
      attend(q + h * size, keys, values, scores + n * s.length, y + h * size, s.first ? s.first[row] : 0, s.used + 1, size);
    }
  }
}

static void feed(const Model &m, const Block &f, const Step &s, const float *n, const float *t, float *u, float *g) {
  linear(f.up, n, t, s.rows, u, false);
  if (f.gate.w) linear(f.gate, n, t, s.rows, g, false);
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
  const int64_t heads = (m->heads + 2 * m->kv_heads) * m->head_size, wide = m->hidden > m->width ? m->hidden : m->width;
  return rows * (2 * m->width + heads + m->heads * m->head_size + 2 * m->hidden + m->kv_heads * length) +
         (rows + 8) * (wide > m->heads * m->head_size ? wide : m->heads * m->head_size);
}

extern "C" void step(const Model *model, const Step *at, int threads) {
  const Model &m = *model;
  const Step &s = *at;
  const int64_t r = s.rows, inner = m.heads * m.head_size, kv = m.kv_heads * m.head_size;
  float *n = s.room, *q = n + r * m.width, *k = q + r * inner, *v = k + r * kv, *y = v + r * kv, *u = y + r * inner,
        *g = u + r * m.hidden, *scores = g + r * m.hidden, *t = scores + r * m.kv_heads * s.length;
#pragma omp parallel num_threads(threads)
  {
    for (int64_t l = 0; l < m.depth; l++) {
      const Block &f = m.blocks[l];
      norm(f.norm_1, s.x, n, r, m.width);
      turn(n, t, r, m.width);
#pragma omp barrier
      linear(f.q, n, t, r, q, false);
      linear(f.k, n, t, r, k, false);
      linear(f.v, n, t, r, v, false);
#pragma omp barrier
      look(m, s, l, q, k, v, scores, y);
      turn(y, t, r, inner);
#pragma omp barrier
      linear(f.out, y, t, r, s.x, true);
#pragma omp barrier
      norm(f.norm_2, s.x, n, r, m.width);
      turn(n, t, r, m.width);
#pragma omp barrier
      feed(m, f, s, n, t, u, g);
      turn(u, t, r, m.hidden);
#pragma omp barrier
      linear(f.down, u, t, r, s.x, true);
#pragma omp barrier
    }
    norm(m.norm, s.x, n, r, m.width);
    turn(n, t, r, m.width);
#pragma omp barrier
    linear(m.head, n, t, r, s.logits, false);
  }
}
