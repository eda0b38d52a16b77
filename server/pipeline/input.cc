#include "server/pipeline/input.h"

namespace encoderd {

int64_t InputBytes(const Input& input) {
  size_t bytes = sizeof(Input);
  if (const auto* text = std::get_if<TextInput>(&input)) {
    bytes += text->text.size();
  } else if (const auto* pair = std::get_if<PairInput>(&input)) {
    bytes += pair->first.size() + pair->second.size();
  } else if (const auto* ids = std::get_if<TokenSequence>(&input)) {
    bytes +=
        sizeof(int32_t) * (ids->token_ids.size() + ids->segment_ids.size() +
                           ids->position_ids.size());
  }
  return static_cast<int64_t>(bytes);
}

absl::string_view ContentName(const Input& input) {
  if (std::holds_alternative<TextInput>(input)) return "text";
  return std::holds_alternative<PairInput>(input) ? "pair" : "tokens";
}

}  // namespace encoderd
