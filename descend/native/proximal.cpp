// PPO's three terms for two small tanh networks, an actor and a critic, with their gradients, in float32.
//
//     log pi of the action taken, r = e^(log pi - old)
//     policy = -mean min(r A, clip(r) A)      value = mean (V - G)^2 / 2      entropy = mean H(pi)
//
// Discrete actions: pi = softmax(out). Vectors: pi = N(out, diag sigma^2), where log sigma is given. The hidden units of
// every level (n, padded size) are kept for the backward pass, the outputs after them.

#include <algorithm>

#include "panels.h"

namespace {

constexpr int DEEP = 8;  // linear layers of a network, at most

struct Tower {
  int64_t levels, size[DEEP + 1];
  const float *w[DEEP], *b[DEEP];  // w (out, in)
  float *dw[DEEP], *db[DEEP];
};

struct Steps {  // what happened in n steps
  int64_t n;
  const float *x;  // (n, size)
  const void *action;  // n numbers, or (n, actions) of floats
  const float *log_sigma;  // none: discrete actions
  const float *old, *advantage, *target;
  float least, most, eps;  // of the ratio, and its distance from 1
  float *memory, *own;  // kept: of the networks; of every step: the slope of log pi, V - G, H, then a number per action
};

// The outputs (n, padded size) of a network; `memory` moves behind what is kept.
const float *run(const Tower &f, int64_t n, const float *x, float *&memory) {
  static thread_local std::vector<float> panels;
  int64_t step = f.size[0];
  for (int64_t k = 0; k < f.levels; k++) {
    const int64_t in = f.size[k], out = f.size[k + 1], wide = rounded(out);
    panels.resize(wide * in);
    pack_turned(f.w[k], in, out, in, panels.data());
    product<false>(x, step, panels.data(), in, memory, wide, n, in, wide);
    for (int64_t r = 0; r < n; r++) {
      float *y = memory + r * wide;
      for (int64_t j = 0; j < out; j++) y[j] += f.b[k][j];
      if (k + 1 < f.levels)
        for (int64_t j = 0; j < wide; j += 8) put(y + j, tanh8(at(y + j)));
    }
    x = memory, step = wide, memory += n * wide;
  }
  return x;
}

// The gradients of a network from those of its outputs d (n, padded size); `memory` begins where its own does.
void back(const Tower &f, int64_t n, const float *x, const float *memory, std::vector<float> &d) {
  static thread_local std::vector<float> panels, before, dw;
  const float *h[DEEP];
  for (int64_t k = 0; k < f.levels; k++) h[k] = memory, memory += n * rounded(f.size[k + 1]);
  for (int64_t k = f.levels - 1; k >= 0; k--) {
    const int64_t in = f.size[k], out = f.size[k + 1], wide = rounded(out), broad = rounded(in);
    std::fill(f.db[k], f.db[k] + out, 0.0f);
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = 0; j < out; j++) f.db[k][j] += d[r * wide + j];
    panels.resize(std::max(n, out) * broad);
    pack(k ? h[k - 1] : x, k ? broad : in, n, in, panels.data());
    dw.assign(out * broad, 0.0f);
    product<true>(d.data(), wide, panels.data(), n, dw.data(), broad, out, n, broad);
    for (int64_t o = 0; o < out; o++) std::copy(&dw[o * broad], &dw[o * broad] + in, f.dw[k] + o * in);
    if (!k) return;
    pack(f.w[k], in, out, in, panels.data());
    before.resize(n * broad);
    product<false>(d.data(), wide, panels.data(), out, before.data(), broad, n, out, broad);
    for (int64_t i = 0; i < n * broad; i += 8) {
      const v8 y = at(h[k - 1] + i);
      put(&before[i], at(&before[i]) * (1 - y * y));
    }
    std::swap(d, before);
  }
}

// log pi of what was done, and H; `own` gets log pi of every action, or (a - mu) / sigma.
float discrete(const float *z, int64_t actions, int64_t taken, float *own, float *entropy) {
  const float top = *std::max_element(z, z + actions);
  float all = 0, h = 0;
  for (int64_t j = 0; j < actions; j++) all += std::exp(z[j] - top);
  const float sum = top + std::log(all);
  for (int64_t j = 0; j < actions; j++) {
    own[j] = z[j] - sum;
    h -= std::exp(own[j]) * own[j];
  }
  *entropy = h;
  return own[taken];
}
float continuous(const float *mu, int64_t actions, const float *taken, const float *log_sigma, float *own, float *entropy) {
  constexpr float LOG_2_PI = 1.8378770664f;
  float log_prob = 0, h = 0;
  for (int64_t j = 0; j < actions; j++) {
    own[j] = (taken[j] - mu[j]) * std::exp(-log_sigma[j]);
    log_prob -= 0.5f * (own[j] * own[j] + 2 * log_sigma[j] + LOG_2_PI);
    h += log_sigma[j] + 0.5f * (LOG_2_PI + 1);
  }
  *entropy = h;
  return log_prob;
}

}  // namespace

// found: policy, value, entropy; approximate KL, clipped share, explained variance.
extern "C" void proximal_forward(const Tower *actor, const Tower *critic, const Steps *s, float *found) {
  const int64_t n = s->n, actions = actor->size[actor->levels], wide = rounded(actions);
  float *memory = s->memory, *slope = s->own, *away = slope + n, *entropy = away + n, *own = entropy + n;
  const float *out = run(*actor, n, s->x, memory), *value = run(*critic, n, s->x, memory);
  double policy = 0, squares = 0, spread = 0, kl = 0, clipped = 0, mean_away = 0, mean_target = 0, error = 0, all = 0;
  for (int64_t r = 0; r < n; r++, own += actions) {
    const float *y = out + r * wide;
    const float log_prob =
        s->log_sigma ? continuous(y, actions, (const float *)s->action + r * actions, s->log_sigma, own, entropy + r)
                     : discrete(y, actions, ((const int64_t *)s->action)[r], own, entropy + r);
    const float change = log_prob - s->old[r], ratio = std::exp(change), a = s->advantage[r];
    const float near = ratio < s->least ? s->least : ratio > s->most ? s->most : ratio;
    const float free = ratio * a, held = near * a;
    slope[r] = free <= held ? -free / n : free > held ? 0 : free;  // NaN stays
    policy -= free <= held ? free : free > held ? held : free;
    all += entropy[r];
    kl += (double)ratio - 1 - change;
    clipped += std::fabs(ratio - 1) > s->eps;
    away[r] = value[r * WIDE] - s->target[r];
    squares += (double)away[r] * away[r];
    mean_away += away[r], mean_target += s->target[r];
  }
  mean_away /= n, mean_target /= n;
  for (int64_t r = 0; r < n; r++) {
    error += (away[r] - mean_away) * (away[r] - mean_away);
    spread += (s->target[r] - mean_target) * (s->target[r] - mean_target);
  }
  const double told[] = {policy, squares / 2, all, kl, clipped};
  for (int i = 0; i < 5; i++) found[i] = (float)(told[i] / n);
  found[5] = spread > 0 ? (float)(1 - error / spread) : 0;
}

// grads: of policy, value and entropy. The gradients go to where the towers say, that of log sigma to its own place.
extern "C" void proximal_backward(const Tower *actor, const Tower *critic, const Steps *s, const float *grads,
                                  float *d_log_sigma) {
  const int64_t n = s->n, actions = actor->size[actor->levels], wide = rounded(actions);
  const float *slope = s->own, *away = slope + n, *entropy = away + n, *own = entropy + n;
  std::vector<float> d(n * wide, 0.0f);
  if (s->log_sigma) std::fill(d_log_sigma, d_log_sigma + actions, grads[2]);
  for (int64_t r = 0; r < n; r++, own += actions) {
    const float g = grads[0] * slope[r], h = grads[2] / n;
    float *to = &d[r * wide];
    for (int64_t j = 0; j < actions; j++) {
      if (s->log_sigma) {
        to[j] = g * own[j] * std::exp(-s->log_sigma[j]);
        d_log_sigma[j] += g * (own[j] * own[j] - 1);
      } else {
        const float p = std::exp(own[j]), hit = ((const int64_t *)s->action)[r] == j;
        to[j] = g * (hit - p) - h * p * (own[j] + entropy[r]);
      }
    }
  }
  const float *memory = s->memory;
  back(*actor, n, s->x, memory, d);
  for (int64_t k = 0; k < actor->levels; k++) memory += n * rounded(actor->size[k + 1]);
  d.assign(n * WIDE, 0.0f);
  for (int64_t r = 0; r < n; r++) d[r * WIDE] = grads[1] * away[r] / n;
  back(*critic, n, s->x, memory, d);
}
