// A chain of affine flow layers, density direction, with its backward pass, in float32.
//
//     raw, b = g(x_given)    t = tanh(raw / limit)    z_moved = exp(-limit t) (x_moved - b)    log_det = -sum limit t
//     dx_moved = e dz,  db = -dx_moved,  draw = (dz z + l)(t^2 - 1),  and back through g into x_given
//
// g is a stack of linear layers with ReLU between them. What the backward pass needs is kept in one block of memory: for
// each layer its input (n, D), the hidden units (n, padded width) of every level, t and e (n, moved).

#include <algorithm>

#include "panels.h"

constexpr int LEVELS = 8;  // linear layers of a network, at most

struct Layer {
  int64_t given_at, given, moved_at, moved, levels, width;
  double limit;
  const float *w[LEVELS], *b[LEVELS], *mask[LEVELS];  // w (out, in)
  float *dw[LEVELS], *db[LEVELS];

  int64_t in(int64_t k) const { return k ? width : given; }
  int64_t out(int64_t k) const { return k + 1 < levels ? width : 2 * moved; }
  int64_t kept(int64_t n, int64_t size) const { return n * (size + (levels - 1) * rounded(width) + 2 * moved); }
};

// w, or w o mask in `room`.
static const float *weights(const Layer &f, int64_t k, std::vector<float> &room) {
  if (!f.mask[k]) return f.w[k];
  const int64_t size = f.in(k) * f.out(k);
  room.resize(size);
  for (int64_t i = 0; i < size; i++) room[i] = f.w[k][i] * f.mask[k][i];
  return room.data();
}

struct Kept {  // where the parts of a layer's memory begin
  float *x, *h, *t, *e;
  int64_t wide;  // steps between rows of h
  Kept(const Layer &f, float *at, int64_t n, int64_t size) : x(at), h(x + n * size), wide(rounded(f.width)) {
    t = h + (f.levels - 1) * n * wide;
    e = t + n * f.moved;
  }
};

extern "C" void affine_forward(const Layer *layers, int64_t count, int64_t n, int64_t size, float *memory, float *z,
                               float *log_det) {
  std::vector<float> panels, out, room;
  std::fill(log_det, log_det + n, 0.0f);
  for (int64_t l = 0; l < count; l++) {
    const Layer &f = layers[l];
    const Kept kept(f, memory, n, size);
    memory += f.kept(n, size);
    if (l == 0) std::copy(z, z + n * size, kept.x);  // z comes in as x
    const float *left = kept.x + f.given_at;
    int64_t step = size;
    for (int64_t k = 0; k < f.levels; k++) {
      const int64_t in = f.in(k), wide = rounded(f.out(k));
      const bool last = k + 1 == f.levels;
      panels.resize(wide * in);
      pack_turned(weights(f, k, room), in, f.out(k), in, panels.data());
      if (last) out.resize(n * wide);
      float *to = last ? out.data() : kept.h + k * n * kept.wide;
      product<false>(left, step, panels.data(), in, to, wide, n, in, wide);
      const float *b = f.b[k], least = last ? -INFINITY : 0.0f;
      const int64_t units = f.out(k);
      for (int64_t r = 0; r < n; r++) {
        float *y = to + r * wide;
        for (int64_t j = 0; j < units; j++) {
          const float v = y[j] + b[j];
          y[j] = v < least ? least : v;  // NaN stays
        }
      }
      left = to, step = wide;
    }
    float *next = l + 1 < count ? memory : z;
    std::copy(kept.x, kept.x + n * size, next);
    const float limit = (float)f.limit;
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = 0; j < f.moved; j++) kept.t[r * f.moved + j] = out[r * step + 2 * j] / limit;
    const int64_t all = n * f.moved;
    int64_t i = 0;
    for (; i + 8 <= all; i += 8) {
      const v8 t = tanh8(at(kept.t + i));
      put(kept.t + i, t);
      put(kept.e + i, exp(-limit * t));
    }
    if (i < all) {
      const v8 t = tanh8(some(kept.t + i, all - i));
      put_some(kept.t + i, t, all - i);
      put_some(kept.e + i, exp(-limit * t), all - i);
    }
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = 0; j < f.moved; j++) {
        float &x = next[r * size + f.moved_at + j];
        x = (x - out[r * step + 2 * j + 1]) * kept.e[r * f.moved + j];
        log_det[r] -= limit * kept.t[r * f.moved + j];
      }
  }
}

// grad (n, size) comes in as dL/dz and goes out as dL/dx; z is the chain's output.
extern "C" void affine_backward(const Layer *layers, int64_t count, int64_t n, int64_t size, float *memory, const float *z,
                                float *grad, const float *grad_log_det) {
  std::vector<float> panels, d, before, room, dw;
  for (int64_t l = 0; l < count; l++) memory += layers[l].kept(n, size);
  const float *after = z;
  for (int64_t l = count - 1; l >= 0; l--) {
    const Layer &f = layers[l];
    memory -= f.kept(n, size);
    const Kept kept(f, memory, n, size);
    int64_t wide = rounded(2 * f.moved);
    d.assign(n * wide, 0.0f);
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = 0; j < f.moved; j++) {
        const int64_t i = r * f.moved + j, at = r * size + f.moved_at + j;
        const float g = grad[at], t = kept.t[i];
        d[r * wide + 2 * j] = (g * after[at] + grad_log_det[r]) * (t * t - 1);
        grad[at] = g * kept.e[i];
        d[r * wide + 2 * j + 1] = -grad[at];
      }
    for (int64_t k = f.levels - 1; k >= 0; k--) {
      const int64_t in = f.in(k), out = f.out(k), broad = rounded(in);
      const float *left = k ? kept.h + (k - 1) * n * kept.wide : kept.x + f.given_at;
      const int64_t step = k ? kept.wide : size;
      float *db = f.db[k];
      std::fill(db, db + out, 0.0f);
      for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < out; j++) db[j] += d[r * wide + j];
      panels.resize(n * broad);
      pack(left, step, n, in, panels.data());
      dw.assign(out * broad, 0.0f);
      product<true>(d.data(), wide, panels.data(), n, dw.data(), broad, out, n, broad);
      for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
          f.dw[k][o * in + i] = f.mask[k] ? dw[o * broad + i] * f.mask[k][o * in + i] : dw[o * broad + i];
      panels.resize(out * broad);
      pack(weights(f, k, room), in, out, in, panels.data());
      before.resize(n * broad);
      product<false>(d.data(), wide, panels.data(), out, before.data(), broad, n, out, broad);
      if (k)
        for (int64_t i = 0; i < n * broad; i++) before[i] = left[i] <= 0 ? 0 : before[i];
      std::swap(d, before);
      wide = broad;
    }
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = 0; j < f.given; j++) grad[r * size + f.given_at + j] += d[r * wide + j];
    after = kept.x;
  }
}
