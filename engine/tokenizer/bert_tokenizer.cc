#include "engine/tokenizer/bert_tokenizer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/error.h"
#include "engine/io/file.h"
#include "engine/tokenizer/utf8.h"

namespace encoderd {
namespace {

// Offsets are 32-bit.
constexpr int64_t kMaxTextBytes = std::numeric_limits<int32_t>::max() - 4096;
// Buffers larger than this are given back after a text.
constexpr int64_t kKeptBytes = 4 << 20;

// Memory without an initial value, which vector cannot give.
template <typename T>
class Buffer {
 public:
  T* Reserve(int64_t count) {
    if (count > capacity_) {
      data_.reset(new T[static_cast<size_t>(count)]);
      capacity_ = count;
    }
    return data_.get();
  }
  void Shrink() {
    if (capacity_ * static_cast<int64_t>(sizeof(T)) <= kKeptBytes) return;
    data_.reset();
    capacity_ = 0;
  }
  T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T[]> data_;
  int64_t capacity_ = 0;
};

template <typename T>
void ShrinkVector(std::vector<T>* values) {
  if (values->capacity() * sizeof(T) > static_cast<size_t>(kKeptBytes)) {
    std::vector<T>().swap(*values);
  }
}

// The text of field "text", "first" or "second", for a message.
std::string TextOf(absl::string_view field) {
  return field == "text" ? "the text" : absl::StrCat("the ", field, " text");
}

absl::Status NotUtf8(absl::string_view field, int64_t offset, size_t bytes) {
  ErrorDetail detail;
  detail.reason = "INVALID_UTF8";
  detail.metadata["byte_offset"] = absl::StrCat(offset);
  detail.metadata["byte_count"] = absl::StrCat(bytes);
  detail.field = std::string(field);
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(TextOf(field), " is not UTF-8 at byte ", offset,
                                " of ", bytes),
                   detail);
}

}  // namespace

class BertTokenizer::Scratch : public TokenizerScratch {
 public:
  struct Text {
    Buffer<int32_t> ids;
    int64_t count = 0;
    std::vector<ByteOffset> offsets;

    TextTokens View() const {
      return {{ids.data(), static_cast<size_t>(count)}, offsets};
    }
  };

  // Between texts memory does not depend on what went before.
  void Shrink() {
    copy.Shrink();
    for (Text& text : texts) {
      text.ids.Shrink();
      ShrinkVector(&text.offsets);
    }
    ShrinkVector(&normal);
    ShrinkVector(&starts);
    ShrinkVector(&encoder.normal);
    if (encoder.word.capacity() > static_cast<size_t>(kKeptBytes)) {
      std::string().swap(encoder.word);
    }
  }

  TextEncoder::Scratch encoder;
  Text texts[2];
  Buffer<char> copy;                       // the text, with room after it
  std::vector<AddedTokens::Piece> pieces;  // of the text
  std::vector<AddedTokens::Piece> normal_pieces;
  std::vector<NormalChar> normal;  // one piece, normalised
  std::string normal_text;         // the same as UTF-8
  std::vector<int32_t> starts;     // byte of normal_text -> place in normal
};

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Load(
    const std::string& folder) {
  absl::StatusOr<TokenizerSpec> spec = FileExists(folder, "tokenizer.json")
                                           ? ReadTokenizerJson(folder)
                                           : ReadVocabulary(folder);
  if (!spec.ok()) return spec.status();
  return BertTokenizer::Create(*std::move(spec));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> BertTokenizer::Create(
    TokenizerSpec spec) {
  absl::StatusOr<WordPiece> word_piece =
      WordPiece::Build(std::move(spec.vocabulary), std::move(spec.word_piece));
  if (!word_piece.ok()) return word_piece.status();
  std::vector<AddedToken> raw, normalized;
  std::vector<std::string> beyond;
  std::vector<int32_t> special;
  for (AddedToken& token : spec.added_tokens) {
    if (token.special) special.push_back(token.id);
    const size_t known = word_piece->vocabulary().size() + beyond.size();
    if (static_cast<size_t>(token.id) == known) {
      beyond.push_back(token.content);
    }
    if (!token.normalized) {
      raw.push_back(std::move(token));
      continue;
    }
    std::vector<NormalChar> chars;
    Normalize(token.content, 0, spec.normalizer, &chars);
    token.content.clear();
    for (const NormalChar& x : chars) utf8::Append(x.c, &token.content);
    normalized.push_back(std::move(token));
  }
  absl::StatusOr<AddedTokens> raw_tokens = AddedTokens::Build(std::move(raw));
  if (!raw_tokens.ok()) return raw_tokens.status();
  absl::StatusOr<AddedTokens> normalized_tokens =
      AddedTokens::Build(std::move(normalized));
  if (!normalized_tokens.ok()) return normalized_tokens.status();
  auto tokenizer = absl::WrapUnique(
      new BertTokenizer(TextEncoder(spec.normalizer, *std::move(word_piece)),
                        *std::move(raw_tokens), *std::move(normalized_tokens)));
  tokenizer->template_ = std::move(spec.post_processor);
  tokenizer->beyond_ = std::move(beyond);
  std::sort(special.begin(), special.end());
  tokenizer->special_ids_ = std::move(special);
  tokenizer->notes_ = std::move(spec.notes);
  absl::Status status = tokenizer->template_.Validate(tokenizer->vocab_size());
  if (!status.ok()) return status;
  return tokenizer;
}

TokenizerScratchPtr BertTokenizer::NewScratch() const {
  return std::make_unique<Scratch>();
}

void BertTokenizer::EncodeFast(absl::string_view text, int which,
                               Scratch* scratch) const {
  // A copy, so that every piece can end in a space and bytes can be read beyond
  // the end.
  const auto size = static_cast<int64_t>(text.size());
  char* const copy = scratch->copy.Reserve(size + TextEncoder::kTextSlack + 1);
  if (size > 0) std::memcpy(copy, text.data(), text.size());
  std::memset(copy + size, ' ', TextEncoder::kTextSlack + 1);
  int32_t* const ids =
      scratch->texts[which].ids.Reserve(size + TextEncoder::kIdSlack);
  int32_t* end = ids;
  for (const AddedTokens::Piece& piece : scratch->pieces) {
    if (piece.id >= 0) {
      *end++ = piece.id;
      continue;
    }
    const char after = std::exchange(copy[piece.end], ' ');
    end = encoder_.Encode(copy + piece.begin, copy + piece.end,
                          &scratch->encoder, end);
    copy[piece.end] = after;
  }
  scratch->texts[which].count = end - ids;
}

void BertTokenizer::EncodeSlow(absl::string_view text, int which, bool offsets,
                               Scratch* scratch) const {
  Scratch::Text& out = scratch->texts[which];
  std::vector<ByteOffset>* const places = offsets ? &out.offsets : nullptr;
  int32_t* const ids = out.ids.Reserve(static_cast<int64_t>(text.size()) +
                                       TextEncoder::kIdSlack);
  int32_t* end = ids;
  for (const AddedTokens::Piece& piece : scratch->pieces) {
    const auto begin = static_cast<int32_t>(piece.begin);
    if (piece.id >= 0) {
      *end++ = piece.id;
      if (offsets) {
        places->push_back({begin, static_cast<int32_t>(piece.end)});
      }
      continue;
    }
    std::vector<NormalChar>& normal = scratch->normal;
    Normalize(text.substr(piece.begin, piece.end - piece.begin), begin,
              encoder_.options(), &normal);
    const absl::Span<const NormalChar> chars(normal);
    if (normalized_tokens_.empty()) {
      end = encoder_.EncodeNormal(chars, end, places, &scratch->encoder);
      continue;
    }
    scratch->normal_text.clear();
    scratch->starts.clear();
    for (size_t i = 0; i < normal.size(); ++i) {
      utf8::Append(normal[i].c, &scratch->normal_text);
      scratch->starts.resize(scratch->normal_text.size(),
                             static_cast<int32_t>(i));
    }
    scratch->starts.push_back(static_cast<int32_t>(normal.size()));
    normalized_tokens_.Split(scratch->normal_text, &scratch->normal_pieces);
    for (const AddedTokens::Piece& part : scratch->normal_pieces) {
      const int32_t first = scratch->starts[part.begin];
      const int32_t last = scratch->starts[part.end];
      if (part.id < 0) {
        end = encoder_.EncodeNormal(chars.subspan(first, last - first), end,
                                    places, &scratch->encoder);
        continue;
      }
      *end++ = part.id;
      if (offsets) {
        places->push_back({normal[first].begin, normal[last - 1].end});
      }
    }
  }
  out.count = end - ids;
}

absl::Status BertTokenizer::EncodeText(absl::string_view text,
                                       absl::string_view field, int which,
                                       const EncodeOptions& options,
                                       Scratch* scratch) const {
  if (static_cast<int64_t>(text.size()) > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(TextOf(field), " has ", text.size(),
                     " bytes; a text has at most ", kMaxTextBytes));
  }
  const std::optional<int64_t> invalid = utf8::FindInvalid(text);
  if (invalid.has_value()) return NotUtf8(field, *invalid, text.size());
  scratch->texts[which].offsets.clear();
  raw_tokens_.Split(text, &scratch->pieces);
  if (options.offsets || !normalized_tokens_.empty()) {
    EncodeSlow(text, which, options.offsets, scratch);
  } else {
    EncodeFast(text, which, scratch);
  }
  return absl::OkStatus();
}

absl::Status BertTokenizer::Encode(absl::string_view text,
                                   const EncodeOptions& options,
                                   TokenizerScratch* scratch,
                                   Encoding* out) const {
  auto* const own = static_cast<Scratch*>(scratch);
  absl::Status status = EncodeText(text, "text", 0, options, own);
  if (status.ok()) {
    template_.Apply(own->texts[0].View(), nullptr, options.offsets, out);
  }
  own->Shrink();
  return status;
}

absl::Status BertTokenizer::EncodePair(absl::string_view first,
                                       absl::string_view second,
                                       const EncodeOptions& options,
                                       TokenizerScratch* scratch,
                                       Encoding* out) const {
  auto* const own = static_cast<Scratch*>(scratch);
  absl::Status status = EncodeText(first, "first", 0, options, own);
  if (status.ok()) {
    status = EncodeText(second, "second", 1, options, own);
  }
  if (status.ok()) {
    const TextTokens second_tokens = own->texts[1].View();
    template_.Apply(own->texts[0].View(), &second_tokens, options.offsets, out);
  }
  own->Shrink();
  return status;
}

void BertTokenizer::Truncate(int64_t max_len, TruncateSide side,
                             Encoding* encoding) const {
  template_.Truncate(max_len, side, encoding);
}

int32_t BertTokenizer::vocab_size() const {
  return static_cast<int32_t>(encoder_.word_piece().vocabulary().size() +
                              beyond_.size());
}

absl::string_view BertTokenizer::Token(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return "";
  const std::vector<std::string>& entries = encoder_.word_piece().vocabulary();
  const auto index = static_cast<size_t>(id);
  return index < entries.size() ? entries[index]
                                : beyond_[index - entries.size()];
}

bool BertTokenizer::is_special(int32_t id) const {
  return std::binary_search(special_ids_.begin(), special_ids_.end(), id);
}

int32_t BertTokenizer::num_special_tokens(bool pair) const {
  return template_.num_special_tokens(pair);
}

const std::string& BertTokenizer::algorithm() const {
  static const std::string* const name = new std::string("WordPiece");
  return *name;
}

}  // namespace encoderd
