// Dropout whose random numbers are a hash of a key and of the place: no mask is written, and the way back finds it again.
//
//     y_i = x_i / (1 - p)  where  hash(key, i) >= p 2^32,  0 elsewhere

#include <cstdint>

constexpr int64_t SMALL = 1 << 15;

static inline uint32_t mix(uint32_t h) {
  h ^= h >> 16, h *= 0x7feb352du;
  h ^= h >> 15, h *= 0x846ca68bu;
  return h ^ (h >> 16);
}

template <class T>
static void drop(int64_t n, uint64_t key, uint64_t limit, T scale, const T *x, T *y, int threads) {
  const uint32_t low = uint32_t(key), high = uint32_t(key >> 32);
#pragma omp parallel for simd schedule(static) num_threads(threads) if (parallel : n > SMALL)
  for (int64_t i = 0; i < n; i++) {
    const uint32_t h = mix(mix(uint32_t(i) + low) + (high ^ uint32_t(uint64_t(i) >> 32)));
    y[i] = h >= limit ? x[i] * scale : T(0);
  }
}

extern "C" void dropout_float32(int64_t n, uint64_t key, uint64_t limit, double scale, const float *x, float *y, int threads) {
  drop<float>(n, key, limit, float(scale), x, y, threads);
}
extern "C" void dropout_float64(int64_t n, uint64_t key, uint64_t limit, double scale, const double *x, double *y,
                                int threads) {
  drop<double>(n, key, limit, scale, x, y, threads);
}
