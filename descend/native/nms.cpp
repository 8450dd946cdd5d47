// Non-maximum suppression: boxes by group and left side, so that a box that is kept looks at its neighbours only.
//
//     by score:  a box that is still there is kept, and every other of its group with IoU > tau goes
//
// If IoU > tau, then -w (1 - tau) / tau < x0' - x0 < w (1 - tau): a window of the sorted boxes, which the compiler takes
// eight at a time. Decisions are those of torch's operations to the last bit: no fused products, NaN overlaps nothing.

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

// Numbers as whole numbers of the same order; NaN is the greatest, -0 is 0.
static uint32_t key_of(float x) {
  if (x != x) return ~0u;
  x += 0.0f;
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits >> 31 ? ~bits : bits | 1u << 31;
}
static uint64_t key_of(double x) {
  if (x != x) return ~0ull;
  x += 0.0;
  uint64_t bits;
  std::memcpy(&bits, &x, 8);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// Sort places by their keys, 11 bits at a time; equal keys stay in order.
template <class K>
static void sort(std::vector<K> &keys, std::vector<int32_t> &places) {
  const size_t n = keys.size();
  std::vector<K> other(n);
  std::vector<int32_t> moved(n);
  K all = 0, common = ~K(0);
  for (K k : keys) all |= k, common &= k;
  for (int shift = 0; shift < int(8 * sizeof(K)); shift += 11) {
    if (!(((all ^ common) >> shift) & 2047)) continue;  // these bits are the same everywhere
    size_t start[2049] = {};
    for (K k : keys) start[((k >> shift) & 2047) + 1]++;
    for (int i = 0; i < 2048; i++) start[i + 1] += start[i];
    for (size_t i = 0; i < n; i++) {
      const size_t to = start[(keys[i] >> shift) & 2047]++;
      other[to] = keys[i], moved[to] = places[i];
    }
    keys.swap(other), places.swap(moved);
  }
}

template <class T, class Mask>
static int64_t scan(int64_t n, const T *boxes, const T *scores, const int64_t *groups, double limit, int64_t *kept) {
  typedef decltype(key_of(T())) Key;
  const T tau = limit, tiny = T(1e-12);
  std::vector<Key> keys(n);
  std::vector<int32_t> order(n), lane(n), place(n);
  for (int64_t i = 0; i < n; i++) keys[i] = ~key_of(scores[i]), order[i] = lane[i] = i;
  sort(keys, order);
  for (int64_t i = 0; i < n; i++) keys[i] = key_of(boxes[4 * i]);
  sort(keys, lane);
  std::vector<uint64_t> group(n);
  for (int64_t i = 0; i < n; i++) group[i] = uint64_t(groups[lane[i]]) ^ (1ull << 63);
  sort(group, lane);
  std::vector<T> x0(n), y0(n), x1(n), y1(n), size(n);
  std::vector<Mask> gone(n);
  std::vector<int32_t> begin(n), end(n);
  for (int64_t i = 0; i < n; i++) {
    const T *box = boxes + 4 * lane[i], w = box[2] - box[0], h = box[3] - box[1];
    x0[i] = box[0], y0[i] = box[1], x1[i] = box[2], y1[i] = box[3];
    size[i] = (w < 0 ? 0 : w) * (h < 0 ? 0 : h);
    place[lane[i]] = i;
    begin[i] = i && group[i] == group[i - 1] ? begin[i - 1] : i;
  }
  for (int64_t i = n - 1; i >= 0; i--) end[i] = i + 1 < n && group[i] == group[i + 1] ? end[i + 1] : i + 1;
  int64_t count = 0;
  for (int64_t rank = 0; rank < n; rank++) {
    const int64_t p = place[order[rank]];
    if (gone[p]) continue;
    kept[count++] = order[rank];
    const double w = std::max(0.0, double(x1[p]) - double(x0[p])), back = limit > 0 ? w / limit : INFINITY;
    const double low = x0[p] - (back - w) - 1e-5 * (back + std::fabs(x0[p]));
    const double high = x0[p] + w * (1 - limit) + 1e-5 * (w + std::fabs(x0[p]));
    int64_t from = begin[p], to = end[p];
    if (low == low && high == high) {  // NaN looks at all of its group
      from = std::lower_bound(&x0[0] + from, &x0[0] + to, low) - &x0[0];
      to = std::upper_bound(&x0[0] + from, &x0[0] + to, high) - &x0[0];
    }
    const T ax0 = x0[p], ay0 = y0[p], ax1 = x1[p], ay1 = y1[p], a = size[p];
    const T *bx0 = x0.data(), *by0 = y0.data(), *bx1 = x1.data(), *by1 = y1.data(), *b = size.data();
    Mask *out = gone.data();
    for (int64_t j = from; j < to; j++) {
      T across = (ax1 < bx1[j] ? ax1 : bx1[j]) - (ax0 > bx0[j] ? ax0 : bx0[j]);
      T down = (ay1 < by1[j] ? ay1 : by1[j]) - (ay0 > by0[j] ? ay0 : by0[j]);
      across = across < 0 ? 0 : across, down = down < 0 ? 0 : down;
      const T both = across * down;
      T either = a + b[j] - both;
      either = either < tiny ? tiny : either;
      out[j] |= both / either > tau;
    }
  }
  return count;
}

extern "C" int64_t nms_float32(int64_t n, const float *boxes, const float *scores, const int64_t *groups, double tau, int64_t *kept) {
  return scan<float, int32_t>(n, boxes, scores, groups, tau, kept);
}
extern "C" int64_t nms_float64(int64_t n, const double *boxes, const double *scores, const int64_t *groups, double tau, int64_t *kept) {
  return scan<double, int64_t>(n, boxes, scores, groups, tau, kept);
}
