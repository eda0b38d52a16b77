// Position schemes: how a model tells one place of a text from another.
//
// One constant object a scheme, chosen by position_embedding_type of
// config.json; what reads a checkpoint or builds a model asks the object and
// never its name. A scheme of the embedding block gives rows [P,H], of which
// row p is added to the token at position id p: the ops behind it do not know
// where the rows came from. A scheme that works in attention is asked for the
// biases of its scores, once, when a model is built; it may give rows as well.
// One that rotates queries and keys gives neither (rotation.h).
//
//   "absolute"    the learned table of the checkpoint, [P,H]; the default.
//                 Row 0 need not be for tokens (IdLimits::position_offset)
//   "sinusoidal"  rows by a formula; no tensor, no parameters, and no length
//                 but the one that other limits set (max_len.h)
//
// Two schemes are an architecture's only one, and no word of config.json names
// them: MPNet's learned table with a bias for the distance of query and key
// (RelativeBiasPositions), and RotaryPositions.
#ifndef ENCODERD_ENGINE_CHECKPOINT_POSITIONS_H_
#define ENCODERD_ENGINE_CHECKPOINT_POSITIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/tensor.h"

namespace encoderd {

// Most rows that are generated: 100 MB at H = 384.
inline constexpr int64_t kMaxGeneratedRows = 65536;

class PositionScheme {
 public:
  // Reads the checkpoint's table [P,H].
  using ReadTable = std::function<absl::StatusOr<HostTable>()>;

  virtual ~PositionScheme() = default;

  // "learned", "sinusoidal", ...: as the contract's Model.position_scheme says
  // it.
  virtual const char* name() const = 0;

  // True: the rows are a tensor of the checkpoint and parameters of the model,
  // and no input is longer than they are. False: the checkpoint has no such
  // tensor, and as many rows as asked for can be had.
  virtual bool has_table() const = 0;

  // Rows [rows,hidden_size] of the embedding block; zero rows: the block adds
  // nothing. `read` is called by schemes with a table only; its errors are
  // passed on.
  virtual absl::StatusOr<HostTable> Rows(int64_t rows, int64_t hidden_size,
                                         const ReadTable& read) const = 0;

  // True: attention adds a bias to each score, by head and by how many tokens
  // the key stands after the query. Places are counted in the sequence: the
  // caller's position ids change nothing here.
  virtual bool biases_attention() const { return false; }

  // False: the embedding block adds no rows.
  virtual bool adds_rows() const { return true; }

  // Rows of the checkpoint's table of biases [rows,A] that Biases reads; 0: it
  // reads none.
  virtual int32_t bias_rows() const { return 0; }

  // The biases of sequences of up to `max_len` tokens, [A, 2 max_len - 1]: of
  // query i and key j in column max_len - 1 + j - i. Asked where
  // biases_attention; max_len > 0.
  virtual HostMatrix Biases(const HostMatrix& table, int32_t heads,
                            int64_t max_len) const;
};

const PositionScheme& LearnedPositions();
const PositionScheme& SinusoidalPositions();
// As MPNet has it: the checkpoint's table of biases has a row for each bucket
// of distances.
const PositionScheme& RelativeBiasPositions();
// No rows: queries and keys are rotated (ModelConfig::rotations).
const PositionScheme& RotaryPositions();

// By config.json's word for it; nullptr for one that is not supported.
const PositionScheme* FindPositionScheme(absl::string_view type);
// By name(); nullptr: there is no such scheme.
const PositionScheme* PositionSchemeNamed(absl::string_view name);
// "absolute, sinusoidal"
std::string SupportedPositionSchemes();

inline constexpr int32_t kRelativeBuckets = 32;
// The bucket of a key that stands `distance` tokens after its query: 0 to 15
// at or before it, 16 to 31 after it. Distances up to 7 have a bucket each;
// then one bucket begins at every factor of sqrt(2), and the last has all from
// 91 on.
int32_t RelativeBucket(int64_t distance);

// out [H]: out[2i] = sin(position / 10000^(2i/H)), out[2i+1] = cos of the same;
// computed in double. An odd H ends in a sine.
void SinusoidalRow(int64_t position, int64_t hidden_size, float* out);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_POSITIONS_H_
