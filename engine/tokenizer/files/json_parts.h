// The parts of tokenizer.json, each read by a separate file. For the readers of
// tokenizer files only.
//
// Errors as in tokenizer_spec.h. Pure functions.
#ifndef ENCODERD_ENGINE_TOKENIZER_FILES_JSON_PARTS_H_
#define ENCODERD_ENGINE_TOKENIZER_FILES_JSON_PARTS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/vocabulary.h"

namespace encoderd::json_parts {

inline constexpr char kFile[] = "tokenizer.json";
inline constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();
inline constexpr size_t kMaxSteps = 32;  // of a sequence of components

// json_common.cc
// DATA_LOSS: "tokenizer.json: WHERE must be WANTED".
absl::Status Bad(absl::string_view where, absl::string_view wanted);
// UNIMPLEMENTED: "tokenizer.json: PART 'FOUND' is not supported; ...".
absl::Status Unsupported(absl::string_view part, absl::string_view found,
                         absl::string_view supported);
// The "type" of the component that is called `part` in errors.
absl::StatusOr<std::string> TypeOf(const Json& component,
                                   absl::string_view part);
// The entries of a sequence: its member `key`, an array of objects.
absl::StatusOr<std::vector<const Json*>> ReadSequence(const Json& json,
                                                      const char* key,
                                                      absl::string_view part);

// json_text.cc: what happens to text. `json` is nullptr for null.
absl::Status ReadNormalizer(const Json* json, TokenizerSpec* out);
absl::Status ReadPreTokenizer(const Json* json, TokenizerSpec* out);

// json_model.cc
absl::Status ReadModel(const Json* json, TokenizerSpec* out);
// { entry: id } with ids 0, 1, ... in any order; `name` is for errors.
absl::Status ReadEntries(const Json& json, absl::string_view name,
                         std::vector<std::string>* vocabulary);
// Appends the merge of two entries, given as "a b" or as a and b; `where` is
// for errors.
absl::Status AddMerge(absl::string_view pair, absl::string_view where,
                      const VocabularyIndex& index, BytePairOptions* out);
absl::Status AddMerge(absl::string_view left, absl::string_view right,
                      absl::string_view where, const VocabularyIndex& index,
                      BytePairOptions* out);

// json_post_processor.cc
absl::StatusOr<PostProcessor> ReadPostProcessor(const Json* json);

}  // namespace encoderd::json_parts

#endif  // ENCODERD_ENGINE_TOKENIZER_FILES_JSON_PARTS_H_
