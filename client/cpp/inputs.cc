#include "client/cpp/inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"
#include "client/cpp/utf8.h"

namespace encoderd::client {
namespace {

absl::Status CheckText(absl::string_view text, int64_t index) {
  const size_t valid = ValidUtf8Prefix(text);
  if (valid == text.size()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("inputs[", index, "] is not valid UTF-8 at byte ", valid),
      "INVALID_UTF8",
      {{"input_index", absl::StrCat(index)},
       {"byte_offset", absl::StrCat(valid)}});
}

}  // namespace

absl::Status CheckUtf8(const v1::Input& input, int64_t index) {
  if (input.has_text()) return CheckText(input.text(), index);
  if (!input.has_pair()) return absl::OkStatus();
  const absl::Status first = CheckText(input.pair().first(), index);
  return first.ok() ? CheckText(input.pair().second(), index) : first;
}

InputSource FromTexts(absl::Span<const std::string> texts) {
  return [texts, at = size_t{0}](v1::Input* input) mutable {
    if (at == texts.size()) return false;
    input->set_text(texts[at++]);
    return true;
  };
}

absl::Status InputCutter::Next(
    google::protobuf::RepeatedPtrField<v1::Input>* inputs) {
  int64_t bytes = 0;
  while (!ended_ && inputs->size() < max_inputs_ && bytes < max_bytes_) {
    v1::Input input;
    const absl::StatusOr<bool> more = source_(&input);
    if (more.ok() && *more) pending_ = CheckUtf8(input, index_);
    if (!more.ok()) pending_ = more.status();
    if (!more.ok() || !*more || !pending_.ok()) {
      ended_ = true;
      break;
    }
    ++index_;
    bytes += static_cast<int64_t>(input.ByteSizeLong());
    *inputs->Add() = std::move(input);
  }
  if (inputs->empty()) return pending_;
  return absl::OkStatus();
}

}  // namespace encoderd::client
