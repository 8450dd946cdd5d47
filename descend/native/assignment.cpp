// The cheapest assignment of the columns of a table of costs to its rows, by shortest augmenting paths, image by image.
//
// `ops/detection/hungarian.py` is the same in words: prices u and v, a path to a free place, an exchange along it.

#include <cmath>
#include <cstdint>
#include <vector>

struct Assignment {
  int64_t batch, rows, columns;
  const double *cost;  // (batch, rows, columns)
  const int64_t *counts;  // (batch): the columns that are there
  int64_t *row_of;  // (batch, columns): -1 for those without a row
};

struct Solver {
  std::vector<double> table, u, v, near;
  std::vector<int64_t> row_of, column_of, back;
  std::vector<uint8_t> closed;

  // table (n, m), n <= m -> column_of (n)
  void solve(int64_t n, int64_t m) {
    u.assign(n, 0), v.assign(m, 0), row_of.assign(m, -1), column_of.assign(n, -1), back.resize(m);
    for (int64_t first = 0; first < n; first++) {
      near.assign(m, INFINITY), closed.assign(m, 0);
      double reach = 0;
      int64_t column = -1;
      for (int64_t row = first; row >= 0; row = row_of[column]) {
        const double *cost = &table[row * m], base = reach - u[row];
        double least = INFINITY;
        for (int64_t j = 0; j < m; j++) {
          if (closed[j]) continue;
          const double through = base + cost[j] - v[j];
          if (through < near[j]) near[j] = through, back[j] = row;
          if (near[j] < least) least = near[j], column = j;
        }
        reach = least, closed[column] = 1;
      }
      u[first] += reach;
      for (int64_t j = 0; j < m; j++)
        if (closed[j] && row_of[j] >= 0) u[row_of[j]] += reach - near[j], v[j] -= reach - near[j];
      while (column >= 0) {
        const int64_t row = row_of[column] = back[column], next = column_of[row];
        column_of[row] = column, column = next;
      }
    }
  }

  void assign(const Assignment &f, int64_t image) {
    const int64_t rows = f.rows, count = f.counts[image];
    const double *cost = f.cost + image * rows * f.columns;
    int64_t *out = f.row_of + image * f.columns;
    for (int64_t j = 0; j < f.columns; j++) out[j] = -1;
    const bool wide = count > rows;  // more columns than rows: some stay without
    const int64_t n = wide ? rows : count, m = wide ? count : rows;
    table.resize(n * m);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < m; j++) table[i * m + j] = wide ? cost[i * f.columns + j] : cost[j * f.columns + i];
    solve(n, m);
    for (int64_t i = 0; i < n; i++) out[wide ? column_of[i] : i] = wide ? i : column_of[i];
  }
};

extern "C" void assign_columns(const Assignment *f, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Solver solver;
#pragma omp for schedule(dynamic)
    for (int64_t image = 0; image < f->batch; image++) solver.assign(*f, image);
  }
}
