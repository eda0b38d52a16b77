#include "engine/tokenizer/added_vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace encoderd {
namespace {

// Normalizes their contents. Where several then are the same text, the first
// one is found, as in the reference, which looks for special tokens first. (Two
// that are the same before are an error of the file, and stay.)
std::vector<AddedToken> Normalized(
    std::vector<AddedToken> tokens,
    const std::function<std::string(const std::string&)>& normalize) {
  std::stable_partition(tokens.begin(), tokens.end(),
                        [](const AddedToken& token) { return token.special; });
  absl::flat_hash_map<std::string, std::string> firsts;  // by normal text
  std::vector<AddedToken> out;
  for (AddedToken& token : tokens) {
    std::string normal = normalize(token.content);
    const auto [first, is_new] = firsts.emplace(normal, token.content);
    if (!is_new && first->second != token.content) continue;
    token.content = std::move(normal);
    out.push_back(std::move(token));
  }
  return out;
}

}  // namespace

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
    (token.normalized ? normalized : raw).push_back(std::move(token));
  }
  std::sort(out.special_ids.begin(), out.special_ids.end());
  absl::StatusOr<AddedTokens> built = AddedTokens::Build(std::move(raw));
  if (!built.ok()) return built.status();
  out.raw = *std::move(built);
  built = AddedTokens::Build(Normalized(std::move(normalized), normalize));
  if (!built.ok()) return built.status();
  out.normalized = *std::move(built);
  return out;
}

}  // namespace encoderd
