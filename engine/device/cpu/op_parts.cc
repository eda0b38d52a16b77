#include "engine/device/cpu/op_parts.h"

#include <algorithm>
#include <limits>

#include "engine/device/cpu/product.h"

namespace encoderd {
namespace cpu {
namespace {

// Fewer rows are not worth another thread. A panel of a product is, since its
// weights must be read; more threads than there are panels need this many rows
// times panels each.
constexpr int64_t kLeastRows = 8;
constexpr int64_t kLeastRowsTimesPanels = 16;

// Costs in the time of multiplying one row by a panel, on an Intel Xeon. With
// other panels and types they are others: 10 to 24 rows of reading, and in int8
// twice the sharing. A wrong one costs time on many cores alone.
//
// Reading the weights of a panel takes as long as this many rows.
constexpr int64_t kRowsOfReading = 24;
// Fetching the inputs of a row from other threads' caches, in quarters.
constexpr int64_t kQuartersOfSharing = 3;

// Sizes of a slice: some tens of microseconds in fp32, short compared with how
// far a thread falls behind, long compared with beginning it. Products: this
// many rows times panels, of at most kProductRows rows, which stay in L2 with a
// panel. If a run prepares its rows, a slice has all panels of its part, so
// that rows are prepared once. Attention: this cost.
constexpr int64_t kSliceRowsTimesPanels = 128;
constexpr int64_t kPreparedRows = 64;
constexpr int64_t kSliceCost = 32 << 10;
constexpr int64_t kMostSlices = 16;

// Packing keys and values: of each query row, in keys that it sees.
constexpr int64_t kKeysOfPacking = 32;

int64_t DividedUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

// Part `part` of `parts` equal ones.
Range EqualPart(const Range& range, int64_t part, int64_t parts) {
  const int64_t begin = range.count * part / parts;
  const int64_t end = range.count * (part + 1) / parts;
  return {range.first + begin, end - begin};
}

void AddSlices(const ProductSize& size, ProductGrid* grid) {
  const int64_t rows = DividedUp(size.rows, grid->row_parts);
  const int64_t panels = size.panels / grid->panel_parts;
  const int64_t most = std::clamp<int64_t>(
      rows * panels / kSliceRowsTimesPanels, 1, kMostSlices);
  const int64_t by_rows = size.prepare_quarters > 0
                              ? rows / kPreparedRows
                              : DividedUp(rows, kProductRows);
  grid->row_slices =
      static_cast<int32_t>(std::clamp<int64_t>(by_rows, 1, most));
  if (size.prepare_quarters > 0) return;
  grid->panel_slices = static_cast<int32_t>(
      std::clamp<int64_t>(most / grid->row_slices, 1, panels));
}

int64_t QueryCost(const QueryLine& line) {
  return line.length + kKeysOfPacking;
}

// The query row nearest to `cost` of the line at which it may be divided.
int64_t NearestCut(const QueryLine& line, int64_t cost) {
  const int64_t n = line.length;
  const int64_t row =
      std::clamp<int64_t>(cost / QueryCost(line), 0, line.heads * n);
  const int64_t step = n < 2 * kQueryStep ? n : kQueryStep;
  const int64_t query = (row % n + step / 2) / step * step;
  const bool at_end = n - query < step / 2;
  return row / n * n + (at_end ? n : query);
}

}  // namespace

int32_t MostRowParts(int64_t rows) {
  return static_cast<int32_t>(std::max<int64_t>(1, rows / kLeastRows));
}

Range RowsOfPart(int64_t rows, int32_t part, int32_t parts) {
  return EqualPart({0, rows}, part, parts);
}

ProductGrid GridOf(const ProductSize& size, int32_t threads) {
  const int64_t rows = size.rows, panels = size.panels;
  const int64_t most = std::max(panels, rows * panels / kLeastRowsTimesPanels);
  threads = static_cast<int32_t>(std::min<int64_t>(threads, most));
  ProductGrid best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int32_t parts = 1; parts <= std::min<int64_t>(panels, threads);
       ++parts) {
    const int32_t row_parts = std::min(threads / parts, MostRowParts(rows));
    const int64_t part_rows = DividedUp(rows, row_parts);
    int64_t cost =
        4 * DividedUp(panels, parts) * std::max(part_rows, kRowsOfReading) +
        size.prepare_quarters * part_rows;
    if (parts > 1) cost += kQuartersOfSharing * part_rows;
    if (cost < least) {
      least = cost;
      best.row_parts = row_parts;
      best.panel_parts = parts;
    }
  }
  if (best.parts() > 1) AddSlices(size, &best);
  return best;
}

ProductBlock PartOf(const ProductGrid& grid, const ProductSize& size,
                    int32_t part) {
  return {
      EqualPart({0, size.rows}, part / grid.panel_parts, grid.row_parts),
      EqualPart({0, size.panels}, part % grid.panel_parts, grid.panel_parts)};
}

ProductBlock SliceOf(const ProductGrid& grid, const ProductSize& size,
                     int32_t part, int32_t slice) {
  const ProductBlock whole = PartOf(grid, size, part);
  return {
      EqualPart(whole.rows, slice / grid.panel_slices, grid.row_slices),
      EqualPart(whole.panels, slice % grid.panel_slices, grid.panel_slices)};
}

int32_t MostQueryParts(int64_t heads, int64_t sequences, int64_t rows) {
  const int64_t pieces = heads * (sequences + rows / kQueryStep);
  return static_cast<int32_t>(std::min<int64_t>(MostRowParts(rows), pieces));
}

int64_t CostOf(const QueryLine& line) {
  return line.heads * line.length * QueryCost(line);
}

int32_t QuerySlices(int64_t cost, int64_t head_cost) {
  return static_cast<int32_t>(std::clamp<int64_t>(
      cost / std::max(head_cost, kSliceCost), 1, kMostSlices));
}

Range QueriesBetween(const QueryLine& line, int64_t begin, int64_t end) {
  if (line.length == 0) return {};
  const int64_t first = NearestCut(line, begin);
  return {first, NearestCut(line, end) - first};
}

void TakePiece(Range* rows, AttentionOp* op) {
  const int64_t length = op->qkv.rows;
  op->first_head = static_cast<int32_t>(rows->first / length);
  op->first_query = rows->first % length;
  op->head_count = 1;
  if (op->first_query == 0 && rows->count > length)
    op->head_count = static_cast<int32_t>(rows->count / length);
  op->query_count = std::min(length - op->first_query, rows->count);
  const int64_t taken = op->head_count * op->query_count;
  *rows = {rows->first + taken, rows->count - taken};
}

}  // namespace cpu
}  // namespace encoderd
