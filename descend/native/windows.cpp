// Attention inside the windows of a map, with a bias for each pair, and its backward pass.
//
//     P = softmax(scale Q K' + B),  Y = P V          in every window of a map that is rolled by `shift` up and left
//     dV = P' dY,  dS = P o (dY V' - D),  D_i = dY_i . Y_i,  dB += dS,  dQ = scale dS K,  dK = scale dS' Q
//
// The map stays where it is: rolling, cutting and joining are the addresses of the rows. A row that the roll brought in
// from the other side does not see the others. Maps are float32 or bfloat16, all else is float32. One image and one head is the work of one thread, so the result does not
// depend on their number.

#include <algorithm>

#include "panels.h"

template <class T>
struct Windows {
  int64_t batch, height, width, heads, size, window, shift;
  double scale;
  const T *qkv;  // maps (batch, height, width, 3, heads, size), and those of y without the 3
  const float *bias;  // (heads, t, t)
  const T *dy;
  T *y;
  float *sums;  // (batch, heads, windows, t)
  T *dqkv;
  float *dbias;  // (batch, heads, t, t)
};

template <class T>
struct Pane {
  int64_t t, s, size, wide;
  int64_t step;  // from a row of Q to its K, and from K to V
  std::vector<int64_t> place, triple, region;  // where a row of Y and where one of Q begins
  std::vector<T> q, k, v, y, dy, turned_k, turned_v, panels, left;
  std::vector<float> scores, slopes, out;
  bool mixed;
  Pane(const Windows<T> &f)
      : t(f.window * f.window), s(rounded(t)), size(f.size), wide(rounded(f.size)), step(f.heads * f.size) {
    place.resize(t), triple.resize(t), region.resize(t);
    for (auto *x : {&q, &k, &v, &y, &dy}) x->resize(t * size);
    for (auto *x : {&turned_k, &turned_v}) x->resize(s * size);
    panels.resize(paired(t) * wide), out.resize(t * wide);
    left.resize(paired(t) * s);
    for (auto *x : {&scores, &slopes}) x->resize(t * s);
  }

  // Where the rows of a window lie in the map, and which of them belong together.
  void look(const Windows<T> &f, int64_t b, int64_t head, int64_t down, int64_t across) {
    const bool last_row = f.shift && down == f.height / f.window - 1, last = f.shift && across == f.width / f.window - 1;
    mixed = last_row || last;
    for (int64_t i = 0; i < t; i++) {
      const int64_t r = i / f.window, c = i % f.window;
      const int64_t row = (down * f.window + r + f.shift) % f.height, column = (across * f.window + c + f.shift) % f.width;
      const int64_t pixel = (b * f.height + row) * f.width + column;
      place[i] = pixel * step + head * size;
      triple[i] = 3 * pixel * step + head * size;
      region[i] = 2 * (last_row && r >= f.window - f.shift) + (last && c >= f.window - f.shift);
    }
  }

  void take(const T *from, const std::vector<int64_t> &where, std::vector<T> &to) {
    for (int64_t i = 0; i < t; i++) std::memcpy(&to[i * size], from + where[i], size * sizeof(T));
  }

  void take_three(const T *qkv) { take(qkv, triple, q), take(qkv + step, triple, k), take(qkv + 2 * step, triple, v); }

  void give(T *to, const std::vector<int64_t> &where, float times) {
    for (int64_t i = 0; i < t; i++) put_row(to + where[i], &out[i * wide], size, times);
  }

  // scale Q K' + B
  void score(const Windows<T> &f, const float *bias) {
    pack_turned(k.data(), size, t, size, turned_k.data());
    product<false>(q.data(), size, turned_k.data(), size, scores.data(), s, t, size, s);
    const float scale = f.scale;
    for (int64_t i = 0; i < t; i++)
      for (int64_t j = 0; j < t; j++) scores[i * s + j] = scale * scores[i * s + j] + bias[i * t + j];
    for (int64_t i = 0; mixed && i < t; i++)
      for (int64_t j = 0; j < t; j++)
        if (region[i] != region[j]) scores[i * s + j] = -1e30f;
  }

  void part(std::vector<float> &x) {
    for (int64_t i = 0; mixed && i < t; i++)
      for (int64_t j = 0; j < t; j++)
        if (region[i] != region[j]) x[i * s + j] = 0;
  }
};

template <class T>
static void forward(const Windows<T> &f, int64_t b, int64_t head, Pane<T> &w) {
  const float *bias = f.bias + head * w.t * w.t;
  float *sums = f.sums + (b * f.heads + head) * f.height * f.width;
  for (int64_t down = 0; down < f.height / f.window; down++)
    for (int64_t across = 0; across < f.width / f.window; across++, sums += w.t) {
      w.look(f, b, head, down, across);
      w.take_three(f.qkv);
      w.score(f, bias);
      for (int64_t i = 0; i < w.t; i++) softmax(&w.scores[i * w.s], w.t, w.s, 1, sums + i);
      w.part(w.scores);
      pack(w.v.data(), w.size, w.t, w.size, w.panels.data());
      product<false>(as_left(w.scores, w.t, w.s, w.s, w.left), w.s, w.panels.data(), w.t, w.out.data(), w.wide, w.t, w.t, w.wide);
      w.give(f.y, w.place, 1);
    }
}

template <class T>
static void backward(const Windows<T> &f, int64_t b, int64_t head, Pane<T> &w) {
  const float *bias = f.bias + head * w.t * w.t;
  const float *sums = f.sums + (b * f.heads + head) * f.height * f.width;
  float *dbias = f.dbias + (b * f.heads + head) * w.t * w.t;
  std::fill(dbias, dbias + w.t * w.t, 0.0f);
  for (int64_t down = 0; down < f.height / f.window; down++)
    for (int64_t across = 0; across < f.width / f.window; across++, sums += w.t) {
      w.look(f, b, head, down, across);
      w.take_three(f.qkv), w.take(f.y, w.place, w.y), w.take(f.dy, w.place, w.dy);
      w.score(f, bias);
      pack_turned(w.v.data(), w.size, w.t, w.size, w.turned_v.data());
      product<false>(w.dy.data(), w.size, w.turned_v.data(), w.size, w.slopes.data(), w.s, w.t, w.size, w.s);
      for (int64_t i = 0; i < w.t; i++) {
        const float d = dot(&w.dy[i * w.size], &w.y[i * w.size], w.size);
        slopes(&w.scores[i * w.s], &w.slopes[i * w.s], w.t, w.s, 1, sums[i], d);
      }
      w.part(w.scores), w.part(w.slopes);
      for (int64_t i = 0; i < w.t; i++)
        for (int64_t j = 0; j < w.t; j++) dbias[i * w.t + j] += w.slopes[i * w.s + j];
      pack(w.k.data(), w.size, w.t, w.size, w.panels.data());
      product<false>(as_left(w.slopes, w.t, w.s, w.s, w.left), w.s, w.panels.data(), w.t, w.out.data(), w.wide, w.t, w.t, w.wide);
      w.give(f.dqkv, w.triple, f.scale);
      pack(w.q.data(), w.size, w.t, w.size, w.panels.data());
      std::fill(w.out.begin(), w.out.end(), 0.0f);
      product<true>(braid(w.slopes, w.t, w.s, w.s, w.left), w.s, w.panels.data(), w.t, w.out.data(), w.wide, w.t, w.t, w.wide);
      w.give(f.dqkv + w.step, w.triple, f.scale);
      pack(w.dy.data(), w.size, w.t, w.size, w.panels.data());
      std::fill(w.out.begin(), w.out.end(), 0.0f);
      product<true>(braid(w.scores, w.t, w.s, w.s, w.left), w.s, w.panels.data(), w.t, w.out.data(), w.wide, w.t, w.t, w.wide);
      w.give(f.dqkv + 2 * w.step, w.triple, 1);
    }
}

template <class T>
static void run(const Windows<T> &f, bool back, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Pane<T> w(f);
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < f.batch * f.heads; n++)
      back ? backward(f, n / f.heads, n % f.heads, w) : forward(f, n / f.heads, n % f.heads, w);
  }
}

extern "C" void window_attention_float32(const Windows<float> *f, int back, int threads) { run(*f, back, threads); }
extern "C" void window_attention_bfloat16(const Windows<half> *f, int back, int threads) { run(*f, back, threads); }
