#include "engine/tokenizer/composed_tokenizer.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "engine/base/reasons.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/normal_text.h"

namespace encoderd {
namespace {

// The text of field "text", "first" or "second", for a message.
std::string TextOf(absl::string_view field) {
  return field == "text" ? "the text" : absl::StrCat("the ", field, " text");
}

absl::Status NotUtf8(absl::string_view field, int64_t offset, size_t bytes) {
  ErrorDetail detail;
  detail.reason = reason::kInvalidUtf8;
  detail.metadata["byte_offset"] = absl::StrCat(offset);
  detail.metadata["byte_count"] = absl::StrCat(bytes);
  detail.field = std::string(field);
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(TextOf(field), " is not UTF-8 at byte ", offset,
                                " of ", bytes),
                   detail);
}

absl::Status GrowsTooLarge(absl::string_view field, size_t bytes,
                           int64_t normal_bytes) {
  const int64_t limit = NormalText::Limit(static_cast<int64_t>(bytes));
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(TextOf(field), " has ", bytes, " bytes, and at least ",
                   normal_bytes, " after normalization; at most ", limit,
                   " are allowed: split it"),
      {reason::kRequestTooLarge,
       {{"text_bytes", absl::StrCat(bytes)},
        {"normalized_bytes", absl::StrCat(normal_bytes)},
        {"limit", absl::StrCat(limit)}},
       std::string(field)});
}

}  // namespace

void ComposedTokenizer::Scratch::Shrink() {
  for (TextIds& text : texts) {
    text.ids.Shrink();
    ShrinkBuffer(&text.offsets);
  }
  ShrinkBuffer(&pieces);
  ShrinkBuffer(&normal_pieces);
}

absl::Status ComposedTokenizer::EncodeOne(absl::string_view text,
                                          absl::string_view field, bool offsets,
                                          Scratch* scratch,
                                          TextIds* out) const {
  if (static_cast<int64_t>(text.size()) > NormalText::kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(TextOf(field), " has ", text.size(),
                     " bytes; a text has at most ", NormalText::kMaxBytes));
  }
  const std::optional<int64_t> invalid = utf8::FindInvalid(text);
  if (invalid.has_value()) return NotUtf8(field, *invalid, text.size());
  out->offsets.clear();
  added_.raw.Split(text, &scratch->pieces);
  const int64_t too_large = EncodeText(text, offsets, scratch, out);
  return too_large == 0 ? absl::OkStatus()
                        : GrowsTooLarge(field, text.size(), too_large);
}

absl::Status ComposedTokenizer::Encode(absl::string_view text,
                                       const EncodeOptions& options,
                                       TokenizerScratch* scratch,
                                       Encoding* out) const {
  auto* const own = static_cast<Scratch*>(scratch);
  absl::Status status =
      EncodeOne(text, "text", options.offsets, own, &own->texts[0]);
  if (status.ok()) {
    post_.pieces.Apply(own->texts[0].View(), nullptr, options.offsets, out);
  }
  own->Shrink();
  return status;
}

absl::Status ComposedTokenizer::EncodePair(absl::string_view first,
                                           absl::string_view second,
                                           const EncodeOptions& options,
                                           TokenizerScratch* scratch,
                                           Encoding* out) const {
  auto* const own = static_cast<Scratch*>(scratch);
  absl::Status status =
      EncodeOne(first, "first", options.offsets, own, &own->texts[0]);
  if (status.ok()) {
    status = EncodeOne(second, "second", options.offsets, own, &own->texts[1]);
  }
  if (status.ok()) {
    const TextTokens second_tokens = own->texts[1].View();
    post_.pieces.Apply(own->texts[0].View(), &second_tokens, options.offsets,
                       out);
  }
  own->Shrink();
  return status;
}

void ComposedTokenizer::Truncate(int64_t max_len, TruncateSide side,
                                 Encoding* encoding) const {
  post_.pieces.Truncate(max_len, side, encoding);
}

int32_t ComposedTokenizer::vocab_size() const {
  return static_cast<int32_t>(vocabulary().size() + added_.beyond.size());
}

absl::string_view ComposedTokenizer::Token(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return "";
  const auto index = static_cast<size_t>(id);
  return index < vocabulary().size()
             ? vocabulary()[index]
             : added_.beyond[index - vocabulary().size()];
}

bool ComposedTokenizer::is_special(int32_t id) const {
  return std::binary_search(added_.special_ids.begin(),
                            added_.special_ids.end(), id);
}

int32_t ComposedTokenizer::num_special_tokens(bool pair) const {
  return post_.pieces.num_special_tokens(pair);
}

}  // namespace encoderd
