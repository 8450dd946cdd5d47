// Which of the boxes found in an image are right, at several IoU thresholds and for several ranges of size.
//
// A group is one class in one image. Its found boxes come by score; each takes the free true box that it overlaps best,
// of those that count before those that are ignored. A crowd may be taken by many, and its union is the found box alone.
// Products are rounded before they are added (no fused operations), so that a tie with a threshold is one everywhere.

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#include <cstdint>
#include <vector>

struct Matching {
  int64_t groups, found, truths, ranges, thresholds;
  const int64_t *found_start, *truth_start;  // (groups + 1)
  const double *boxes, *true_boxes;  // (found, 4), (truths, 4)
  const uint8_t *crowd;  // (truths)
  const uint8_t *ignored;  // (ranges, truths)
  const uint8_t *outside;  // (ranges, found)
  const double *least;  // (thresholds)
  uint8_t *verdict;  // (ranges, thresholds, found): 0 wrong, 1 right, 2 does not count
};

static double overlap(const double *a, const double *b, bool crowd) {
  const double w = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
  if (!(w > 0)) return 0;
  const double h = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
  if (!(h > 0)) return 0;
  const double both = w * h, one = (a[2] - a[0]) * (a[3] - a[1]);
  return both / (crowd ? one : one + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

static void match(const Matching &f, int64_t group, std::vector<double> &iou, std::vector<uint8_t> &taken) {
  const int64_t d0 = f.found_start[group], n = f.found_start[group + 1] - d0;
  const int64_t g0 = f.truth_start[group], m = f.truth_start[group + 1] - g0;
  iou.resize(n * m), taken.resize(m);
  for (int64_t d = 0; d < n; d++)
    for (int64_t g = 0; g < m; g++)
      iou[d * m + g] = overlap(f.boxes + 4 * (d0 + d), f.true_boxes + 4 * (g0 + g), f.crowd[g0 + g]);
  for (int64_t range = 0; range < f.ranges; range++) {
    const uint8_t *ignored = f.ignored + range * f.truths + g0, *outside = f.outside + range * f.found + d0;
    for (int64_t t = 0; t < f.thresholds; t++) {
      uint8_t *verdict = f.verdict + (range * f.thresholds + t) * f.found + d0;
      for (auto &x : taken) x = 0;
      for (int64_t d = 0; d < n; d++) {
        const double *row = &iou[d * m];
        double best[2] = {f.least[t], f.least[t]};
        int64_t place[2] = {-1, -1};  // of those that count, of those that do not
        for (int64_t g = 0; g < m; g++)
          if (row[g] >= best[ignored[g]] && (!taken[g] || f.crowd[g0 + g])) best[ignored[g]] = row[g], place[ignored[g]] = g;
        const int64_t found = place[0] >= 0 ? place[0] : place[1];
        if (found >= 0) taken[found] = 1;
        verdict[d] = found < 0 ? 2 * outside[d] : place[0] >= 0 ? 1 : 2;
      }
    }
  }
}

extern "C" void match_found(const Matching *f, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<double> iou;
    std::vector<uint8_t> taken;
#pragma omp for schedule(dynamic, 64)
    for (int64_t group = 0; group < f->groups; group++) match(*f, group, iou, taken);
  }
}
