// Position schemes: how a model tells one place of a text from another.
//
// One constant object a scheme, chosen by position_embedding_type of
// config.json; what reads a checkpoint or builds a model asks the object and
// never its name. A scheme of the embedding block gives rows [P,H], of which
// row p is added to the token at position id p: the ops behind it do not know
// where the rows came from. A scheme that works in attention (rotation, linear
// or relative bias) gives no rows there and gets a question of its own here,
// asked once when a model is built.
//
//   "absolute"    the learned table of the checkpoint, [P,H]; the default.
//                 Row 0 need not be for tokens (IdLimits::position_offset)
//   "sinusoidal"  rows by a formula; no tensor, no parameters, and no length
//                 but the one that other limits set (max_len.h)
#ifndef ENCODERD_ENGINE_POSITIONS_H_
#define ENCODERD_ENGINE_POSITIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tensor.h"

namespace encoderd {

// Most rows that are generated: 100 MB at H = 384.
inline constexpr int64_t kMaxGeneratedRows = 65536;

class PositionScheme {
 public:
  // Reads the checkpoint's table [P,H].
  using ReadTable = std::function<absl::StatusOr<HostMatrix>()>;

  virtual ~PositionScheme() = default;

  // "learned", "sinusoidal": as the contract's Model.position_scheme says it.
  virtual const char* name() const = 0;

  // True: the rows are a tensor of the checkpoint and parameters of the model,
  // and no input is longer than they are. False: the checkpoint has no such
  // tensor, and as many rows as asked for can be had.
  virtual bool has_table() const = 0;

  // Rows [rows,hidden_size] of the embedding block; zero rows: the block adds
  // nothing. `read` is called by schemes with a table only; its errors are
  // passed on.
  virtual absl::StatusOr<HostMatrix> Rows(int64_t rows, int64_t hidden_size,
                                          const ReadTable& read) const = 0;
};

const PositionScheme& LearnedPositions();
const PositionScheme& SinusoidalPositions();

// By config.json's word for it; nullptr for one that is not supported.
const PositionScheme* FindPositionScheme(absl::string_view type);
// "absolute, sinusoidal"
std::string SupportedPositionSchemes();

// out [H]: out[2i] = sin(position / 10000^(2i/H)), out[2i+1] = cos of the same;
// computed in double. An odd H ends in a sine.
void SinusoidalRow(int64_t position, int64_t hidden_size, float* out);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_POSITIONS_H_
