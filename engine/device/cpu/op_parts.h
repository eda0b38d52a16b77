// Which part of an op each thread of a team computes. Arithmetic alone: the
// bits are the same however an op is divided, only the time is not.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_OP_PARTS_H_
#define ENCODERD_ENGINE_DEVICE_CPU_OP_PARTS_H_

#include <cstdint>

namespace encoderd {
namespace cpu {

struct Range {
  int64_t first = 0;
  int64_t count = 0;

  int64_t end() const { return first + count; }
  bool operator==(const Range&) const = default;
};

// Ops that compute each row alone: the most parts that are worth a thread, and
// the rows of each.
int32_t MostRowParts(int64_t rows);
Range RowsOfPart(int64_t rows, int32_t part, int32_t parts);

// A product: rows, and panels of columns. A thread reads all weights of its
// panels, and other threads' caches for the inputs of rows that it shares.
struct ProductPart {
  Range rows, panels;

  bool operator==(const ProductPart&) const = default;
};
int32_t MostProductParts(int64_t rows, int64_t panels);
// Equal blocks of the product, as the least time asks; the last parts may have
// none.
ProductPart PartOfProduct(int64_t rows, int64_t panels, int32_t part,
                          int32_t parts);

// Attention: the query rows of a sequence in line, those of its first head, of
// its second, and so on.
struct QueryLine {
  int64_t heads = 0;
  int64_t length = 0;     // of the sequence
  int64_t most_keys = 0;  // that a query reads; at most `length`
};
// To be compared with that of other sequences.
int64_t CostOf(const QueryLine& line);
// What lies between two places of the line's cost, each moved to where the line
// may be divided; a place before its begin or after its end counts as that. A
// head whose queries are divided is prepared by each part, so those of short
// sequences stay whole; others are divided at multiples of kQueryStep.
constexpr int64_t kQueryStep = 96;  // whole groups of the kernel
Range QueriesBetween(const QueryLine& line, int64_t begin, int64_t end);

// What one run of the kernel computes: the same query rows of some heads.
struct QueryPiece {
  Range heads, queries;

  bool operator==(const QueryPiece&) const = default;
};
// Takes the first piece off `rows`, which are not empty, of a line of heads of
// `length`: what is left of a head, whole heads, or some of one.
QueryPiece TakePiece(int64_t length, Range* rows);

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_OP_PARTS_H_
