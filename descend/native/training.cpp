// Attention and GELU for training, with their backward passes, in float32 or bfloat16.
//
//     P = softmax(scale Q K' + mask),  Y = P V            mask: nothing, or no key after the query (causal)
//     dV = P' dY,  dS = P o (dY V' - D),  D_i = dY_i . Y_i,  dQ = scale dS K,  dK = scale dS' Q
//
// P is never stored: the backward pass makes it again from Q, K and the logarithm L of each row's sum of exponentials.
// In bfloat16 the factors of products are rounded; scores, softmax and sums are float32. One sequence and one key head is
// the work of one thread, so the result does not depend on their number.

#include <algorithm>

#include "panels.h"

template <class T>
struct Heads {
  T *p;                          // (batch, rows, heads, size)
  int64_t batch, row, head;      // steps between neighbours; the last dimension is dense
  T *at(int64_t b, int64_t h) const { return p + b * batch + h * head; }
};

template <class T>
struct Attention {
  int64_t batch, heads, kv_heads, t, s, size, causal;
  double scale;
  Heads<T> q, k, v, y, dy, dq, dk, dv;
  float *sums;  // L (batch, heads, t)
};

constexpr int64_t ROWS = 24;  // queries at a time

template <class T>
struct Scratch {
  int64_t s, size;
  std::vector<T> turned_k, turned_v, k, v, q, dy, p, d;
  std::vector<float> scores, slopes, dk, dv, wide;
  Scratch(int64_t keys, int64_t width) : s(rounded(keys)), size(rounded(width)) {
    for (auto *x : {&turned_k, &turned_v, &k, &v}) x->resize(s * size);
    for (auto *x : {&q, &dy}) x->resize(ROWS * size);
    for (auto *x : {&p, &d}) x->resize(ROWS * s);
    for (auto *x : {&dk, &dv}) x->resize(s * size);
    for (auto *x : {&scores, &slopes}) x->resize(ROWS * s);
    wide.resize(ROWS * size);
  }
};

// The keys that a query sees; with fewer queries than keys, the queries are the last ones.
template <class T>
static int64_t seen(const Attention<T> &f, int64_t i) {
  return f.causal ? i + 1 + f.s - f.t : f.s;
}

template <class T>
static void put_rows(const float *from, T *to, int64_t step, int64_t rows, int64_t size, int64_t padded) {
  for (int64_t r = 0; r < rows; r++) put_row(to + r * step, from + r * padded, size, 1);
}

template <class T>
static void forward(const Attention<T> &f, int64_t b, int64_t kv, Scratch<T> &w) {
  pack_turned(f.k.at(b, kv), f.k.row, f.s, f.size, w.turned_k.data());
  pack(f.v.at(b, kv), f.v.row, f.s, f.size, w.v.data());
  const int64_t group = f.heads / f.kv_heads;
  for (int64_t h = kv * group; h < kv * group + group; h++)
    for (int64_t i = 0; i < f.t; i += ROWS) {
      const int64_t rows = f.t - i < ROWS ? f.t - i : ROWS, keys = rounded(seen(f, i + rows - 1));
      product<false>(f.q.at(b, h) + i * f.q.row, f.q.row, w.turned_k.data(), f.size, w.scores.data(), w.s, rows, f.size, keys);
      for (int64_t r = 0; r < rows; r++)
        softmax(w.scores.data() + r * w.s, seen(f, i + r), keys, f.scale, f.sums + (b * f.heads + h) * f.t + i + r);
      const int64_t real = keys < f.s ? keys : f.s;
      const T *p = as_left(w.scores, rows, w.s, keys, w.p);
      product<false>(p, w.s, w.v.data(), f.s, w.wide.data(), w.size, rows, real, w.size);
      put_rows(w.wide.data(), f.y.at(b, h) + i * f.y.row, f.y.row, rows, f.size, w.size);
    }
}

template <class T>
static void backward(const Attention<T> &f, int64_t b, int64_t kv, Scratch<T> &w) {
  pack_turned(f.k.at(b, kv), f.k.row, f.s, f.size, w.turned_k.data());
  pack_turned(f.v.at(b, kv), f.v.row, f.s, f.size, w.turned_v.data());
  pack(f.k.at(b, kv), f.k.row, f.s, f.size, w.k.data());
  std::fill(w.dk.begin(), w.dk.end(), 0.0f);
  std::fill(w.dv.begin(), w.dv.end(), 0.0f);
  const int64_t group = f.heads / f.kv_heads;
  for (int64_t h = kv * group; h < kv * group + group; h++)
    for (int64_t i = 0; i < f.t; i += ROWS) {
      const int64_t rows = f.t - i < ROWS ? f.t - i : ROWS, keys = rounded(seen(f, i + rows - 1)), real = keys < f.s ? keys : f.s;
      const T *q = f.q.at(b, h) + i * f.q.row, *dy = f.dy.at(b, h) + i * f.dy.row, *y = f.y.at(b, h) + i * f.y.row;
      product<false>(q, f.q.row, w.turned_k.data(), f.size, w.scores.data(), w.s, rows, f.size, keys);
      product<false>(dy, f.dy.row, w.turned_v.data(), f.size, w.slopes.data(), w.s, rows, f.size, keys);
      for (int64_t r = 0; r < rows; r++) {
        const float d = dot(dy + r * f.dy.row, y + r * f.y.row, f.size), sum = f.sums[(b * f.heads + h) * f.t + i + r];
        slopes(w.scores.data() + r * w.s, w.slopes.data() + r * w.s, seen(f, i + r), keys, f.scale, sum, d);
      }
      const T *d = as_left(w.slopes, rows, w.s, keys, w.d);
      product<false>(d, w.s, w.k.data(), f.s, w.wide.data(), w.size, rows, real, w.size);
      put_rows(w.wide.data(), f.dq.at(b, h) + i * f.dq.row, f.dq.row, rows, f.size, w.size);
      pack(q, f.q.row, rows, f.size, w.q.data());
      pack(dy, f.dy.row, rows, f.size, w.dy.data());
      const T *p = braid(w.scores, rows, w.s, keys, w.p);
      product<true>(p, w.s, w.dy.data(), rows, w.dv.data(), w.size, real, rows, w.size);
      d = braid(w.slopes, rows, w.s, keys, w.d);
      product<true>(d, w.s, w.q.data(), rows, w.dk.data(), w.size, real, rows, w.size);
    }
  put_rows(w.dk.data(), f.dk.at(b, kv), f.dk.row, f.s, f.size, w.size);
  put_rows(w.dv.data(), f.dv.at(b, kv), f.dv.row, f.s, f.size, w.size);
}

template <class T>
static void run(const Attention<T> &f, bool back, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Scratch<T> w(f.s, f.size);
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < f.batch * f.kv_heads; n++)
      back ? backward(f, n / f.kv_heads, n % f.kv_heads, w) : forward(f, n / f.kv_heads, n % f.kv_heads, w);
  }
}

extern "C" void attention_float32(const Attention<float> *f, int back, int threads) { run(*f, back, threads); }
extern "C" void attention_bfloat16(const Attention<half> *f, int back, int threads) { run(*f, back, threads); }

// gelu(x) = x sigma(w), w = x (a + b x^2); without dy its value, else dy times its slope sigma + gelu (1 - sigma) (a + 3 b x^2).
template <class T>
static void gelu(const T *x, const T *dy, T *y, int64_t n, int threads) {
  constexpr float a = 1.5957691216f, b = a * 0.044715f;
  constexpr int64_t piece = 4096;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t from = 0; from < n; from += piece)
    for (int64_t i = from; i < n && i < from + piece; i += 8) {
      const int64_t count = n - i < 8 ? n - i : 8;
      const bool whole = count == 8;
      const v8 z = whole ? at(x + i) : some(x + i, count), sigma = 1 / (1 + exp(-z * (a + b * z * z))), g = z * sigma;
      v8 r = g;
      if (dy) r = (whole ? at(dy + i) : some(dy + i, count)) * (sigma + g * (1 - sigma) * (a + 3 * b * z * z));
      whole ? put(y + i, r) : put_some(y + i, r, count);
    }
}

extern "C" void gelu_tanh_float32(const float *x, const float *dy, float *y, int64_t n, int threads) {
  gelu(x, dy, y, n, threads);
}
extern "C" void gelu_tanh_bfloat16(const half *x, const half *dy, half *y, int64_t n, int threads) {
  gelu(x, dy, y, n, threads);
}
