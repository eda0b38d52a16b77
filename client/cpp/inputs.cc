#include "client/cpp/inputs.h"

#include <algorithm>

#include "absl/strings/numbers.h"
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
      kInvalidUtf8,
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
  return {[texts, at = size_t{0}](v1::Input* input, absl::Status*) mutable {
    if (at == texts.size()) return false;
    input->set_text(texts[at++]);
    return true;
  }};
}

int64_t FewerInputs(const absl::Status& refusal, int64_t inputs) {
  const auto details = GetErrorDetails(refusal);
  if (details.has_value() && details->reason == kTooManyInputs) {
    const auto found = details->metadata.find("limit");
    int64_t limit = 0;
    if (found != details->metadata.end() &&
        absl::SimpleAtoi(found->second, &limit) && limit < inputs) {
      return std::max<int64_t>(limit, 1);
    }
  }
  return (inputs + 1) / 2;
}

bool InputCutter::Read() {
  if (held_) return true;
  if (ended_) return false;
  input_.Clear();
  refused_ = absl::OkStatus();
  const absl::StatusOr<bool> more = source_.next(&input_, &refused_);
  if (more.ok() && *more) {
    if (refused_.ok()) refused_ = CheckUtf8(input_, index_);
    held_ = refused_.ok() || per_input_;
    if (!held_) status_ = refused_;
  } else if (!more.ok()) {
    status_ = more.status();
  }
  ended_ = !held_;
  return held_;
}

Cut InputCutter::Next(google::protobuf::RepeatedPtrField<v1::Input>* inputs) {
  Cut cut;
  cut.first_input = index_;
  int64_t bytes = 0;
  while (static_cast<int64_t>(cut.sent_as.size()) < max_inputs_ &&
         bytes < max_bytes_ && (cut.sent_as.empty() || Ready()) && Read()) {
    if (refused_.ok()) {
      const auto size = static_cast<int64_t>(input_.ByteSizeLong());
      if (size >= max_bytes_ && !cut.sent_as.empty()) break;
      bytes += size;
      cut.sent_as.push_back(inputs->size());
      inputs->Add()->Swap(&input_);
    } else {
      cut.sent_as.push_back(-1);
    }
    cut.errors.push_back(refused_);
    held_ = false;
    ++index_;
  }
  return cut;
}

}  // namespace encoderd::client
