// Graph-based segmentation: edges from light to heavy join two segments where the edge is no heavier than what already
// lies inside either of them, plus a bonus for small ones. `ops/images/segments.py` says what it computes.

#include <algorithm>
#include <cstdint>
#include <vector>

static int32_t find_root(std::vector<int32_t> &parent, int32_t i) {
  int32_t root = i;
  while (parent[root] != root) root = parent[root];
  while (parent[i] != root) {
    const int32_t next = parent[i];
    parent[i] = root, i = next;
  }
  return root;
}

// Edges (m, 2) sorted by their costs (m) -> the root of each of the n nodes.
extern "C" void segment_graph(int64_t n, int64_t m, const int64_t *edges, const double *costs, double scale,
                              int64_t least, int64_t *roots) {
  std::vector<int32_t> parent(n);
  std::vector<int64_t> size(n, 1);
  std::vector<double> inside(n, 0.0);
  for (int64_t i = 0; i < n; i++) parent[i] = int32_t(i);
  for (int64_t e = 0; e < m; e++) {
    const int32_t a = find_root(parent, int32_t(edges[2 * e])), b = find_root(parent, int32_t(edges[2 * e + 1]));
    if (a == b || !(costs[e] < std::min(inside[a] + scale / double(size[a]), inside[b] + scale / double(size[b]))))
      continue;
    const int32_t root = std::min(a, b), other = std::max(a, b);
    parent[other] = root, size[root] += size[other], inside[root] = costs[e];
  }
  for (int64_t e = 0; e < m; e++) {
    const int32_t a = find_root(parent, int32_t(edges[2 * e])), b = find_root(parent, int32_t(edges[2 * e + 1]));
    if (a == b || (size[a] >= least && size[b] >= least)) continue;
    const int32_t root = std::min(a, b), other = std::max(a, b);
    parent[other] = root, size[root] += size[other];
  }
  for (int64_t i = 0; i < n; i++) roots[i] = find_root(parent, int32_t(i));
}
