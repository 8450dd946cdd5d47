// What nodes hear from their neighbours: sums, maxima and attention over the pairs that lead to each target.
//
//     sum       y_i = sum_k w_k x_{c_k}                                        k in starts[i] .. starts[i + 1] - 1
//     max       y_i = max_k x_{c_k}, and how many are as large
//     attend    a_k = exp(z_k) / sum_l exp(z_l),   y_i = sum_k m_k a_k h_{c_k}       for each head; and backward
//
// c_k is the source of the k-th pair in the order of targets, order[k] its number among all pairs: w, z, a and m are in
// the order of the pairs as they were given. Each row is the work of one thread, so that every sum has one order.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "vectors.h"

constexpr int64_t SMALL = 1 << 15;  // products below which threads cost more than they save

// y[0..N L) = sum_k w_k x[c_k][0..N L), in N vectors of L numbers that stay in registers.
template <int N, class T>
static void sum_vectors(int64_t from, int64_t to, const int64_t *columns, const int64_t *order, const T *weight, const T *x,
                        int64_t step, T *y) {
  typedef T vector __attribute__((vector_size(32), aligned(sizeof(T))));  // at any address
  vector sum[N] = {};
  for (int64_t k = from; k < to; k++) {
    const vector *row = (const vector *)(x + columns[k] * step);
    const T w = weight ? weight[order[k]] : T(1);
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) sum[j] += w * row[j];
  }
#pragma GCC unroll 8
  for (int j = 0; j < N; j++) ((vector *)y)[j] = sum[j];
}

template <class T>
static void sum(int64_t n, int64_t d, const int64_t *starts, const int64_t *columns, const int64_t *order, const T *weight,
                const T *x, T *y, int threads) {
  constexpr int64_t L = 32 / sizeof(T);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads) if (starts[n] * d > SMALL)
  for (int64_t i = 0; i < n; i++) {
    const int64_t from = starts[i], to = starts[i + 1];
    T *row = y + i * d;
    int64_t j = 0;
    for (; j + 8 * L <= d; j += 8 * L) sum_vectors<8>(from, to, columns, order, weight, x + j, d, row + j);
    for (; j + 2 * L <= d; j += 2 * L) sum_vectors<2>(from, to, columns, order, weight, x + j, d, row + j);
    for (; j + L <= d; j += L) sum_vectors<1>(from, to, columns, order, weight, x + j, d, row + j);
    for (; j < d; j++) {
      T total = 0;
      for (int64_t k = from; k < to; k++) total += (weight ? weight[order[k]] : T(1)) * x[columns[k] * d + j];
      row[j] = total;
    }
  }
}

template <class T>
static void dots(int64_t e, int64_t d, const int64_t *left, const int64_t *right, const T *a, const T *b, T *out,
                 int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (e * d > SMALL)
  for (int64_t k = 0; k < e; k++) {
    const T *p = a + left[k] * d, *q = b + right[k] * d;
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t j = 0; j < d; j++) total += p[j] * q[j];
    out[k] = total;
  }
}

// NaN is larger than everything, as in torch. `ties`: how many neighbours are as large as the largest; 0 without any.
template <class T>
static void largest(int64_t n, int64_t d, const int64_t *starts, const int64_t *columns, const T *x, T *y, T *ties,
                    int threads) {
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads) if (starts[n] * d > SMALL)
  for (int64_t i = 0; i < n; i++) {
    T *top = y + i * d, *equal = ties + i * d;
    const int64_t from = starts[i], to = starts[i + 1];
    std::fill(equal, equal + d, T(0));
    if (from == to) std::fill(top, top + d, T(0));
    for (int64_t k = from; k < to; k++) {
      const T *row = x + columns[k] * d;
      for (int64_t j = 0; j < d; j++) {
        const bool more = k == from || row[j] > top[j] || row[j] != row[j];
        equal[j] = more ? T(1) : equal[j] + (row[j] == top[j] ? T(1) : T(0));
        top[j] = more ? row[j] : top[j];
      }
    }
  }
}

// By the order of sources: what each value is told of every maximum that it is.
template <class T>
static void largest_back(int64_t n, int64_t d, const int64_t *starts, const int64_t *columns, const T *x, const T *y,
                         const T *ties, const T *dy, T *dx, int threads) {
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads) if (starts[n] * d > SMALL)
  for (int64_t i = 0; i < n; i++) {
    T *to = dx + i * d;
    const T *own = x + i * d;
    std::fill(to, to + d, T(0));
    for (int64_t k = starts[i]; k < starts[i + 1]; k++) {
      const int64_t at = columns[k] * d;
      for (int64_t j = 0; j < d; j++) to[j] += own[j] == y[at + j] ? dy[at + j] / ties[at + j] : T(0);
    }
  }
}

template <class T>
struct Attention {
  int64_t n, heads, size;                     // targets
  const int64_t *starts, *columns, *order;    // in the order of targets
  int64_t sources;                            // and in the order of sources
  const int64_t *starts_back, *columns_back, *order_back;
  const T *z, *keep, *h;                      // (e, heads), (e, heads) or none, (sources, heads, size)
  T *share, *y;                               // (e, heads), (n, heads, size)
  const T *dy;
  T *dz, *dh;
};

static inline void exp_all(int64_t n, double *x) {
  for (int64_t i = 0; i < n; i++) x[i] = std::exp(x[i]);
}
static inline void exp_all(int64_t n, float *x) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) put(x + i, exp(at(x + i)));
  if (i < n) put_some(x + i, exp(some(x + i, n - i)), n - i);
}

// C: the size of a head where it is known to the compiler, or 0.
template <int C, class T>
static void attend(const Attention<T> &a, int threads) {
  const int64_t heads = a.heads, size = C ? C : a.size, width = heads * size;
#pragma omp parallel num_threads(threads) if (a.starts[a.n] * width > SMALL)
  {
    std::vector<T> top(heads), total(heads);
#pragma omp for schedule(dynamic, 64)
    for (int64_t i = 0; i < a.n; i++) {
      const int64_t from = a.starts[i], to = a.starts[i + 1];
      std::fill(top.begin(), top.end(), -INFINITY);
      std::fill(total.begin(), total.end(), T(0));
      for (int64_t k = from; k < to; k++) {
        const T *z = a.z + a.order[k] * heads;
        for (int64_t g = 0; g < heads; g++) top[g] = z[g] > top[g] ? z[g] : top[g];
      }
      for (int64_t k = from; k < to; k++) {
        const T *z = a.z + a.order[k] * heads;
        T *share = a.share + a.order[k] * heads;
        for (int64_t g = 0; g < heads; g++) share[g] = z[g] - top[g];
        exp_all(heads, share);
        for (int64_t g = 0; g < heads; g++) total[g] += share[g];
      }
      for (int64_t g = 0; g < heads; g++) total[g] = 1 / total[g];
      T *y = a.y + i * width;
      std::fill(y, y + width, T(0));
      for (int64_t k = from; k < to; k++) {
        const T *h = a.h + a.columns[k] * width, *keep = a.keep ? a.keep + a.order[k] * heads : nullptr;
        T *share = a.share + a.order[k] * heads;
        for (int64_t g = 0; g < heads; g++) {
          share[g] *= total[g];
          const T w = keep ? share[g] * keep[g] : share[g];
          for (int64_t j = 0; j < size; j++) y[g * size + j] += w * h[g * size + j];
        }
      }
    }
  }
}

template <int C, class T>
static void attend_back(const Attention<T> &a, int threads) {
  const int64_t heads = a.heads, size = C ? C : a.size, width = heads * size;
#pragma omp parallel num_threads(threads) if (a.starts[a.n] * width > SMALL)
  {
    std::vector<T> mean(heads);
#pragma omp for schedule(dynamic, 64)
    for (int64_t i = 0; i < a.n; i++) {  // dz_k = a_k (da_k - sum_l a_l da_l),  da_k = m_k dy . h_{c_k}
      const int64_t from = a.starts[i], to = a.starts[i + 1];
      const T *dy = a.dy + i * width;
      std::fill(mean.begin(), mean.end(), T(0));
      for (int64_t k = from; k < to; k++) {
        const T *h = a.h + a.columns[k] * width, *share = a.share + a.order[k] * heads;
        const T *keep = a.keep ? a.keep + a.order[k] * heads : nullptr;
        T *dz = a.dz + a.order[k] * heads;
        for (int64_t g = 0; g < heads; g++) {
          T d = 0;
#pragma omp simd reduction(+ : d)
          for (int64_t j = 0; j < size; j++) d += dy[g * size + j] * h[g * size + j];
          dz[g] = keep ? d * keep[g] : d;
          mean[g] += share[g] * dz[g];
        }
      }
      for (int64_t k = from; k < to; k++) {
        const T *share = a.share + a.order[k] * heads;
        T *dz = a.dz + a.order[k] * heads;
        for (int64_t g = 0; g < heads; g++) dz[g] = share[g] * (dz[g] - mean[g]);
      }
    }
#pragma omp for schedule(dynamic, 64)
    for (int64_t i = 0; i < a.sources; i++) {  // dh_u = sum_k m_k a_k dy_{t_k}
      T *dh = a.dh + i * width;
      std::fill(dh, dh + width, T(0));
      for (int64_t k = a.starts_back[i]; k < a.starts_back[i + 1]; k++) {
        const T *dy = a.dy + a.columns_back[k] * width, *share = a.share + a.order_back[k] * heads;
        const T *keep = a.keep ? a.keep + a.order_back[k] * heads : nullptr;
        for (int64_t g = 0; g < heads; g++) {
          const T w = keep ? share[g] * keep[g] : share[g];
          for (int64_t j = 0; j < size; j++) dh[g * size + j] += w * dy[g * size + j];
        }
      }
    }
  }
}

template <class T>
static void run_attention(const Attention<T> &a, bool back, int threads) {
#define SIZE(C) back ? attend_back<C>(a, threads) : attend<C>(a, threads)
  if (a.size == 8)
    SIZE(8);
  else if (a.size == 16)
    SIZE(16);
  else
    SIZE(0);
}

// Numbers 0..n-1 counted, and places in their order, stable. Returns whether all numbers were in range.
extern "C" int graph_group(int64_t count, int64_t n, const int64_t *by, int64_t *order, int64_t *starts) {
  std::fill(starts, starts + n + 1, 0);
  for (int64_t k = 0; k < count; k++) {
    if (by[k] < 0 || by[k] >= n) return 0;
    starts[by[k] + 1]++;
  }
  for (int64_t i = 0; i < n; i++) starts[i + 1] += starts[i];
  std::vector<int64_t> next(starts, starts + n);
  for (int64_t k = 0; k < count; k++) order[next[by[k]]++] = k;
  return 1;
}

#define FOR_TYPE(T, NAME)                                                                                               \
  extern "C" void graph_sum_##NAME(int64_t n, int64_t d, const int64_t *starts, const int64_t *columns,                 \
                                   const int64_t *order, const T *weight, const T *x, T *y, int threads) {              \
    sum(n, d, starts, columns, order, weight, x, y, threads);                                                           \
  }                                                                                                                     \
  extern "C" void graph_dots_##NAME(int64_t e, int64_t d, const int64_t *left, const int64_t *right, const T *a,        \
                                    const T *b, T *out, int threads) {                                                  \
    dots(e, d, left, right, a, b, out, threads);                                                                        \
  }                                                                                                                     \
  extern "C" void graph_max_##NAME(int64_t n, int64_t d, const int64_t *starts, const int64_t *columns, const T *x,     \
                                   T *y, T *ties, int threads) {                                                        \
    largest(n, d, starts, columns, x, y, ties, threads);                                                                \
  }                                                                                                                     \
  extern "C" void graph_max_back_##NAME(int64_t n, int64_t d, const int64_t *starts, const int64_t *columns,            \
                                        const T *x, const T *y, const T *ties, const T *dy, T *dx, int threads) {       \
    largest_back(n, d, starts, columns, x, y, ties, dy, dx, threads);                                                   \
  }                                                                                                                     \
  extern "C" void graph_attend_##NAME(const Attention<T> *a, int threads) { run_attention(*a, false, threads); }                      \
  extern "C" void graph_attend_back_##NAME(const Attention<T> *a, int threads) { run_attention(*a, true, threads); }

FOR_TYPE(float, float32)
FOR_TYPE(double, float64)
