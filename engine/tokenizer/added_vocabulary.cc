#include "engine/tokenizer/added_vocabulary.h"

#include <algorithm>
#include <utility>

namespace encoderd {

absl::StatusOr<AddedVocabulary> AddedVocabulary::Build(
    std::vector<AddedToken> tokens, size_t vocabulary_size,
    const std::function<std::string(const std::string&)>& normalize) {
  AddedVocabulary out;
  std::vector<AddedToken> raw, normalized;
  for (AddedToken& token : tokens) {
    if (token.special) out.special_ids.push_back(token.id);
    if (static_cast<size_t>(token.id) == vocabulary_size + out.beyond.size()) {
      out.beyond.push_back(token.content);
    }
    if (!token.normalized) {
      raw.push_back(std::move(token));
      continue;
    }
    token.content = normalize(token.content);
    normalized.push_back(std::move(token));
  }
  std::sort(out.special_ids.begin(), out.special_ids.end());
  absl::StatusOr<AddedTokens> built = AddedTokens::Build(std::move(raw));
  if (!built.ok()) return built.status();
  out.raw = *std::move(built);
  built = AddedTokens::Build(std::move(normalized));
  if (!built.ok()) return built.status();
  out.normalized = *std::move(built);
  return out;
}

}  // namespace encoderd
