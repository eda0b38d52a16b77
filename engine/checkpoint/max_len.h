// Which limit becomes max_len: a pure rule over what a model's files say.
// Lengths are tokens of one input, special tokens included.
#ifndef ENCODERD_ENGINE_CHECKPOINT_MAX_LEN_H_
#define ENCODERD_ENGINE_CHECKPOINT_MAX_LEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace encoderd {

// Which limit became max_len.
enum class MaxLenSource {
  kPositionTable,         // rows less the position offset
  kSentenceTransformers,  // max_seq_length
  kTokenizer,             // model_max_length
  kFlag,                  // --max_len
  kMaxPositions,          // max_position_embeddings, where there is no table
};
const char* MaxLenSourceName(
    MaxLenSource source);  // "position_table", "sentence_transformers", ...

// What the files and the flag say; 0: nothing.
struct LengthLimits {
  int64_t table = 0;         // max_position_embeddings less the offset
  bool table_bounds = true;  // no input is longer. False: rows are generated,
                             // `table` is a claim that only counts when neither
                             // of the next two is set
  bool is_table = true;  // rows that are stored. False: max_position_embeddings
                         // says what the model was trained for
  int64_t max_seq_length = 0;
  int64_t model_max_length = 0;
  int64_t flag = 0;
};

struct MaxLen {
  int32_t tokens = 0;
  MaxLenSource source = MaxLenSource::kPositionTable;
  std::vector<std::string> notes;  // for the log
};

// The smallest limit; the flag replaces it. A max_seq_length or
// model_max_length over a stored table is ignored, with a note.
// INVALID_ARGUMENT: the flag is over the table, or no file sets a limit and the
// flag does not either, or more rows than kMaxGeneratedRows would be generated.
absl::StatusOr<MaxLen> ChooseMaxLen(const LengthLimits& limits);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_MAX_LEN_H_
