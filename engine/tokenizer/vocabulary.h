// Checks that every model makes of its vocabulary. Pure functions.
#ifndef ENCODERD_ENGINE_TOKENIZER_VOCABULARY_H_
#define ENCODERD_ENGINE_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd {

struct VocabularyLimits {
  int64_t max_entries = 0;
  int64_t max_entry_bytes = 0;
  bool unique = true;        // no entry may have two ids
  bool allow_empty = false;  // entries without a byte, any number of them
};

// DATA_LOSS: no entry or too many, one that is too long, not UTF-8, empty
// without `allow_empty` or, with `unique`, there twice. `vocabulary` [id].
absl::Status CheckVocabulary(const std::vector<std::string>& vocabulary,
                             const VocabularyLimits& limits);

// The id of the unknown token; DATA_LOSS when the vocabulary lacks it.
absl::StatusOr<int32_t> FindUnknownToken(
    const std::vector<std::string>& vocabulary, absl::string_view token);

// Room for all that `table`, which is empty, will hold. Abseil's tables are
// broken where an allocation fails, and their destructor would free what never
// was: such a one is left as it is, for it owns nothing, and replaced by
// an empty one.
template <typename Table>
void ReserveAll(size_t count, Table* table) {
  try {
    table->reserve(count);
  } catch (...) {
    new (table) Table();
    throw;
  }
}

// Entry -> id, of an entry with two ids the last, as the reference has it. The
// vocabulary must outlive it.
using VocabularyIndex = absl::flat_hash_map<absl::string_view, int32_t>;
VocabularyIndex IndexVocabulary(const std::vector<std::string>& vocabulary);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_VOCABULARY_H_
