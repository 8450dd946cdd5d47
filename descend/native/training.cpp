// Attention and GELU for training, with their backward passes.
//
//     P = softmax(scale Q K' + mask),  Y = P V            mask: nothing, or no key after the query (causal)
//     dV = P' dY,  dS = P o (dY V' - D),  D_i = dY_i . Y_i,  dQ = scale dS K,  dK = scale dS' Q
//
// P is never stored: the backward pass makes it again from Q, K and the logarithm L of each row's sum of exponentials.
// One sequence and one key head is the work of one thread, so the result does not depend on their number.

#include <cmath>
#include <cstring>
#include <algorithm>
#include <vector>

#include "panels.h"

struct Heads {
  float *p;                      // (batch, rows, heads, size)
  int64_t batch, row, head;      // steps between neighbours; the last dimension is dense
  float *at(int64_t b, int64_t h) const { return p + b * batch + h * head; }
};

struct Attention {
  int64_t batch, heads, kv_heads, t, s, size, causal;
  double scale;
  Heads q, k, v, y, dy, dq, dk, dv;
  float *sums;  // L (batch, heads, t)
};

constexpr int64_t ROWS = 24;  // queries at a time
struct Scratch {
  int64_t s, size;
  std::vector<float> turned_k, turned_v, k, v, scores, slopes, q, dy, dk, dv, wide;
  Scratch(int64_t keys, int64_t width) : s(rounded(keys)), size(rounded(width)) {
    for (auto *x : {&turned_k, &turned_v, &k, &v, &dk, &dv}) x->resize(s * size);
    for (auto *x : {&scores, &slopes}) x->resize(ROWS * s);
    for (auto *x : {&q, &dy, &wide}) x->resize(ROWS * size);
  }
};

// The keys that a query sees; with fewer queries than keys, the queries are the last ones.
static int64_t seen(const Attention &f, int64_t i) { return f.causal ? i + 1 + f.s - f.t : f.s; }

static void put(const float *from, float *to, int64_t step, int64_t rows, int64_t size, int64_t padded) {
  for (int64_t r = 0; r < rows; r++) std::memcpy(to + r * step, from + r * padded, size * sizeof(float));
}

static void forward(const Attention &f, int64_t b, int64_t kv, Scratch &w) {
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
      product<false>(w.scores.data(), w.s, w.v.data(), f.s, w.wide.data(), w.size, rows, real, w.size);
      put(w.wide.data(), f.y.at(b, h) + i * f.y.row, f.y.row, rows, f.size, w.size);
    }
}

static void backward(const Attention &f, int64_t b, int64_t kv, Scratch &w) {
  pack_turned(f.k.at(b, kv), f.k.row, f.s, f.size, w.turned_k.data());
  pack_turned(f.v.at(b, kv), f.v.row, f.s, f.size, w.turned_v.data());
  pack(f.k.at(b, kv), f.k.row, f.s, f.size, w.k.data());
  std::fill(w.dk.begin(), w.dk.end(), 0.0f);
  std::fill(w.dv.begin(), w.dv.end(), 0.0f);
  const int64_t group = f.heads / f.kv_heads;
  for (int64_t h = kv * group; h < kv * group + group; h++)
    for (int64_t i = 0; i < f.t; i += ROWS) {
      const int64_t rows = f.t - i < ROWS ? f.t - i : ROWS, keys = rounded(seen(f, i + rows - 1)), real = keys < f.s ? keys : f.s;
      const float *q = f.q.at(b, h) + i * f.q.row, *dy = f.dy.at(b, h) + i * f.dy.row, *y = f.y.at(b, h) + i * f.y.row;
      product<false>(q, f.q.row, w.turned_k.data(), f.size, w.scores.data(), w.s, rows, f.size, keys);
      product<false>(dy, f.dy.row, w.turned_v.data(), f.size, w.slopes.data(), w.s, rows, f.size, keys);
      for (int64_t r = 0; r < rows; r++) {
        float dot = 0;
        for (int64_t c = 0; c < f.size; c++) dot += dy[r * f.dy.row + c] * y[r * f.y.row + c];
        const float sum = f.sums[(b * f.heads + h) * f.t + i + r];
        slopes(w.scores.data() + r * w.s, w.slopes.data() + r * w.s, seen(f, i + r), keys, f.scale, sum, dot);
      }
      product<false>(w.slopes.data(), w.s, w.k.data(), f.s, w.wide.data(), w.size, rows, real, w.size);
      put(w.wide.data(), f.dq.at(b, h) + i * f.dq.row, f.dq.row, rows, f.size, w.size);
      pack(q, f.q.row, rows, f.size, w.q.data());
      pack(dy, f.dy.row, rows, f.size, w.dy.data());
      product<true>(w.scores.data(), w.s, w.dy.data(), rows, w.dv.data(), w.size, real, rows, w.size);
      product<true>(w.slopes.data(), w.s, w.q.data(), rows, w.dk.data(), w.size, real, rows, w.size);
    }
  put(w.dk.data(), f.dk.at(b, kv), f.dk.row, f.s, f.size, w.size);
  put(w.dv.data(), f.dv.at(b, kv), f.dv.row, f.s, f.size, w.size);
}

extern "C" void attention(const Attention *f, int back, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Scratch w(f->s, f->size);
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < f->batch * f->kv_heads; n++)
      back ? backward(*f, n / f->kv_heads, n % f->kv_heads, w) : forward(*f, n / f->kv_heads, n % f->kv_heads, w);
  }
}

// gelu(x) = x sigma(w), w = x (a + b x^2); without dy its value, else dy times its slope sigma + gelu (1 - sigma) (a + 3 b x^2).
extern "C" void gelu_tanh(const float *x, const float *dy, float *y, int64_t n, int threads) {
  constexpr float a = 1.5957691216f, b = a * 0.044715f;
  constexpr int64_t piece = 4096;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t from = 0; from < n; from += piece)
    for (int64_t i = from; i < n && i < from + piece; i += 8) {
      float in[8] = {}, up[8] = {}, out[8];
      const int64_t count = n - i < 8 ? n - i : 8;
      const bool whole = count == 8;
      if (!whole) std::memcpy(in, x + i, count * sizeof(float));
      if (!whole && dy) std::memcpy(up, dy + i, count * sizeof(float));
      const v8 z = whole ? at(x + i) : at(in), sigma = 1 / (1 + exp(-z * (a + b * z * z))), g = z * sigma;
      const v8 r = dy ? (whole ? at(dy + i) : at(up)) * (sigma + g * (1 - sigma) * (a + 3 * b * z * z)) : g;
      if (whole)
        *(v8 *)(y + i) = r;
      else {
        *(v8 *)out = r;
        std::memcpy(y + i, out, count * sizeof(float));
      }
    }
}
