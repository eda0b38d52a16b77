// Which part of an op each thread of a team computes, and in which slices.
// Arithmetic alone: the bits are the same however an op is divided, only the
// time is not.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_OP_PARTS_H_
#define ENCODERD_ENGINE_DEVICE_CPU_OP_PARTS_H_

#include <cstdint>

#include "engine/device/ops.h"

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

struct ProductSize {
  int64_t rows = 1;
  int64_t panels = 1;            // of columns
  int64_t prepare_quarters = 0;  // as ProductKernels has it
};
// Some rows and some panels of a product.
struct ProductBlock {
  Range rows, panels;

  bool operator==(const ProductBlock&) const = default;
};
// A product, divided into parts, and these into slices: blocks of about equal
// size, of which none is empty.
struct ProductGrid {
  int32_t row_parts = 1;
  int32_t panel_parts = 1;
  int32_t row_slices = 1;
  int32_t panel_slices = 1;

  int32_t parts() const { return row_parts * panel_parts; }
  int32_t slices() const { return row_slices * panel_slices; }
  bool operator==(const ProductGrid&) const = default;
};
// The grid of at most `threads` parts whose largest is estimated to take the
// least time. A part reads the weights of its panels, whatever its rows are,
// prepares its rows, and reads inputs that other threads made where these share
// its rows. One part is one slice.
ProductGrid GridOf(const ProductSize& size, int32_t threads);
ProductBlock PartOf(const ProductGrid& grid, const ProductSize& size,
                    int32_t part);
ProductBlock SliceOf(const ProductGrid& grid, const ProductSize& size,
                     int32_t part, int32_t slice);

// Attention: the query rows of a sequence in line, those of its first head, of
// its second, and so on.
struct QueryLine {
  int64_t heads = 0;
  int64_t length = 0;  // of the sequence
};
// The most parts that are worth a thread. rows: of all sequences.
int32_t MostQueryParts(int64_t heads, int64_t sequences, int64_t rows);
// As if all queries were computed and each saw all keys: under a reach the
// parts of one sequence are equal only where each query sees as many.
int64_t CostOf(const QueryLine& line);
// Into how many slices a part of this cost is divided, where the costliest head
// has head_cost: of at least a head, since each slice packs its heads.
int32_t QuerySlices(int64_t cost, int64_t head_cost);
// The query rows whose cost lies from `begin` to `end`, each of these clamped
// to the line and moved to the nearest place where it may be divided. A part
// packs the keys and values of every head of which it has queries, so heads of
// fewer than 2 * kQueryStep stay whole; others are divided at multiples of
// kQueryStep.
constexpr int64_t kQueryStep = 96;  // a multiple of attention_kernel.h's kGroup
Range QueriesBetween(const QueryLine& line, int64_t begin, int64_t end);

// Takes off `rows` of a line, which are not empty, what one run of the kernel
// computes, the same query rows of some heads, and names them in `op`: what is
// left of a head, whole heads, or some of one.
void TakePiece(Range* rows, AttentionOp* op);

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_OP_PARTS_H_
