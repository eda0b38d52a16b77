#include "engine/device/cpu/op_parts.h"

#include <algorithm>
#include <limits>

namespace encoderd {
namespace cpu {
namespace {

// Fewer rows are not worth another thread; nor is a block of a product of fewer
// rows times panels.
constexpr int64_t kLeastRows = 8;
constexpr int64_t kLeastBlock = 16;

// What reading the weights of a panel takes, in rows that are multiplied by
// them: fewer rows take as long.
constexpr int64_t kRowsOfReading = 24;

// What fetching the inputs of a row from other threads' caches takes, in
// quarters of the time of multiplying it by a panel.
constexpr int64_t kQuartersOfSharing = 3;

// What preparing a head takes of each of its query rows, in keys.
constexpr int64_t kKeysOfPreparing = 32;

int64_t DividedUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

// Part `part` of `parts` equal ones.
Range EqualPart(int64_t count, int64_t part, int64_t parts) {
  const int64_t first = count * part / parts;
  return {first, count * (part + 1) / parts - first};
}

// row_parts times column_parts blocks of a product.
struct Grid {
  int32_t row_parts = 1, column_parts = 1;
};

// The one whose blocks take the least time.
Grid GridOf(int64_t rows, int64_t panels, int32_t parts) {
  Grid best;
  int64_t least = std::numeric_limits<int64_t>::max();
  const auto most_columns =
      static_cast<int32_t>(std::min<int64_t>(panels, parts));
  for (int32_t columns = 1; columns <= most_columns; ++columns) {
    const int32_t row_parts = std::min(parts / columns, MostRowParts(rows));
    const int64_t block = DividedUp(rows, row_parts);
    int64_t cost =
        4 * DividedUp(panels, columns) * std::max(block, kRowsOfReading);
    if (columns > 1) cost += kQuartersOfSharing * block;
    if (cost < least) {
      least = cost;
      best = {row_parts, columns};
    }
  }
  return best;
}

int64_t QueryCost(const QueryLine& line) {
  return line.most_keys + kKeysOfPreparing;
}

// The query row nearest to `cost` of the line at which it may be divided.
int64_t CutAt(const QueryLine& line, int64_t cost) {
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
  return EqualPart(rows, part, parts);
}

int32_t MostProductParts(int64_t rows, int64_t panels) {
  return static_cast<int32_t>(std::max(panels, rows * panels / kLeastBlock));
}

ProductPart PartOfProduct(int64_t rows, int64_t panels, int32_t part,
                          int32_t parts) {
  const Grid grid = GridOf(rows, panels, parts);
  if (part >= grid.row_parts * grid.column_parts) return {};
  return {EqualPart(rows, part / grid.column_parts, grid.row_parts),
          EqualPart(panels, part % grid.column_parts, grid.column_parts)};
}

int64_t CostOf(const QueryLine& line) {
  return line.heads * line.length * QueryCost(line);
}

Range QueriesBetween(const QueryLine& line, int64_t begin, int64_t end) {
  if (line.length == 0) return {};
  const int64_t first = CutAt(line, begin);
  return {first, CutAt(line, end) - first};
}

QueryPiece TakePiece(int64_t length, Range* rows) {
  const int64_t query = rows->first % length;
  QueryPiece piece = {{rows->first / length, 1}, {query, length - query}};
  if (query == 0) {
    piece.heads.count = std::max<int64_t>(1, rows->count / length);
  }
  piece.queries.count = std::min(piece.queries.count, rows->count);
  const int64_t taken = piece.heads.count * piece.queries.count;
  *rows = {rows->first + taken, rows->count - taken};
  return piece;
}

}  // namespace cpu
}  // namespace encoderd
