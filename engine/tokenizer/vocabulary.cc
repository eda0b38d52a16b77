#include "engine/tokenizer/vocabulary.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"

namespace encoderd {

VocabularyIndex IndexVocabulary(const std::vector<std::string>& vocabulary) {
  VocabularyIndex index;
  ReserveAll(vocabulary.size(), &index);
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    index.insert_or_assign(vocabulary[id], static_cast<int32_t>(id));
  }
  return index;
}

absl::Status CheckVocabulary(const std::vector<std::string>& vocabulary,
                             const VocabularyLimits& limits) {
  if (vocabulary.empty()) return absl::DataLossError("the vocabulary is empty");
  if (static_cast<int64_t>(vocabulary.size()) > limits.max_entries) {
    return absl::DataLossError(
        absl::StrCat("the vocabulary has ", vocabulary.size(),
                     " entries; at most ", limits.max_entries));
  }
  VocabularyIndex index;
  if (limits.unique) ReserveAll(vocabulary.size(), &index);
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary[id].empty() && limits.allow_empty) continue;
    const auto bytes = static_cast<int64_t>(vocabulary[id].size());
    if (bytes == 0 || bytes > limits.max_entry_bytes) {
      return absl::DataLossError(
          absl::StrCat("vocabulary entry ", id, " has ", bytes,
                       " bytes; it must have 1 to ", limits.max_entry_bytes));
    }
    if (utf8::FindInvalid(vocabulary[id]).has_value()) {
      return absl::DataLossError(
          absl::StrCat("vocabulary entry ", id, " is not UTF-8"));
    }
    if (!limits.unique) continue;
    const auto [known, is_new] =
        index.try_emplace(vocabulary[id], static_cast<int32_t>(id));
    if (!is_new) {
      return absl::DataLossError(
          absl::StrCat("vocabulary entry \"", absl::CHexEscape(vocabulary[id]),
                       "\" has two ids, ", known->second, " and ", id));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> FindUnknownToken(
    const std::vector<std::string>& vocabulary, absl::string_view token) {
  const auto found = std::find(vocabulary.begin(), vocabulary.end(), token);
  if (found == vocabulary.end()) {
    return absl::DataLossError(
        absl::StrCat("the vocabulary lacks the unknown token \"",
                     absl::CHexEscape(token.substr(0, 80)), "\""));
  }
  return static_cast<int32_t>(found - vocabulary.begin());
}

}  // namespace encoderd
