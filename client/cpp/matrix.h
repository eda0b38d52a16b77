// What comes back: one matrix for a list of texts. Row-major little-endian
// floats are copied from the answers as they are.
#ifndef ENCODERD_CLIENT_CPP_MATRIX_H_
#define ENCODERD_CLIENT_CPP_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cpp/inputs.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::client {

// Embeddings of n inputs: values [n,D], row i belongs to input i.
struct EmbeddingMatrix {
  int64_t rows = 0;           // n
  int64_t columns = 0;        // D: Model.dimensions, or those asked for
  std::vector<float> values;  // [n,D] row-major
  std::vector<uint32_t> token_counts;  // [n] before any cut
  std::vector<uint8_t> truncated;      // [n] 1: cut to max_len, as asked for
  std::vector<uint32_t> windows;       // [n] averaged; 0: it fitted
  // [n] under PER_INPUT: why the row is 0; else OK.
  std::vector<absl::Status> errors;

  absl::Span<const float> row(int64_t i) const {
    const auto size = static_cast<size_t>(columns);
    return absl::MakeConstSpan(values).subspan(static_cast<size_t>(i) * size,
                                               size);
  }
};

// Token-level states of one input: values [rows,columns].
struct TokenStates {
  int64_t rows = 0;     // n, tokens after a cut
  int64_t columns = 0;  // H
  std::vector<float> values;
  uint32_t token_count = 0;  // before any cut
  bool truncated = false;
  absl::Status error;  // under PER_INPUT: why there are none; else OK
};

// The rows of the inputs of `cut`; `response` answers those that were sent.
// Rows without values are 0; `columns` is 0 if no row has any. INTERNAL if the
// answer does not fit: another number of rows, rows of unequal length.
absl::Status ReadRows(const v1::EmbedResponse& response, const Cut& cut,
                      EmbeddingMatrix* matrix);

// Adds `rows` below `matrix`. INTERNAL if they have other columns.
absl::Status AppendRows(const EmbeddingMatrix& rows, EmbeddingMatrix* matrix);

// Copies one input's states. INTERNAL if the bytes are not rows x columns.
absl::Status ReadStates(const v1::TokenStates& message, TokenStates* states);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_MATRIX_H_
