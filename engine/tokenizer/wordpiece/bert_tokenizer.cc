#include "engine/tokenizer/wordpiece/bert_tokenizer.h"

#include <cstring>
#include <utility>
#include <variant>

#include "absl/memory/memory.h"
#include "engine/base/utf8.h"

namespace encoderd {
namespace {

BertNormalizerOptions NormalizerOf(const TokenizerSpec& spec) {
  if (spec.normalizer.empty()) return {false, false, false, false};
  return std::get<BertNormalizerOptions>(spec.normalizer[0]);
}

}  // namespace

class BertTokenizer::OwnScratch : public ComposedTokenizer::Scratch {
 public:
  void Shrink() override {
    Scratch::Shrink();
    copy.Shrink();
    ShrinkBuffer(&normal);
    ShrinkBuffer(&normal_text);
    ShrinkBuffer(&starts);
    ShrinkBuffer(&encoder.normal);
    ShrinkBuffer(&encoder.word);
  }

  TextEncoder::Scratch encoder;
  Buffer<char> copy;               // the text, with room after it
  std::vector<NormalChar> normal;  // one piece, normalized
  std::string normal_text;         // the same as UTF-8
  std::vector<int32_t> starts;     // byte of normal_text -> place in normal
};

bool BertTokenizer::Fits(const TokenizerSpec& spec) {
  return std::holds_alternative<WordPieceOptions>(spec.model) &&
         spec.pre_tokenizer.size() == 1 &&
         std::holds_alternative<BertSplit>(spec.pre_tokenizer[0]) &&
         (spec.normalizer.empty() ||
          (spec.normalizer.size() == 1 &&
           std::holds_alternative<BertNormalizerOptions>(spec.normalizer[0])));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> BertTokenizer::Create(
    TokenizerSpec spec) {
  absl::StatusOr<WordPiece> word_piece =
      WordPiece::Build(std::move(spec.vocabulary),
                       std::get<WordPieceOptions>(std::move(spec.model)));
  if (!word_piece.ok()) return word_piece.status();
  const BertNormalizerOptions options = NormalizerOf(spec);
  const auto normalize = [&options](const std::string& content) {
    std::vector<NormalChar> chars;
    BertNormalize(content, 0, options, &chars);
    std::string normal;
    for (const NormalChar& x : chars) utf8::Append(x.c, &normal);
    return normal;
  };
  absl::StatusOr<AddedVocabulary> added = AddedVocabulary::Build(
      std::move(spec.added_tokens), word_piece->vocabulary().size(), normalize);
  if (!added.ok()) return added.status();
  auto tokenizer = absl::WrapUnique(
      new BertTokenizer(TextEncoder(options, *std::move(word_piece)),
                        *std::move(added), std::move(spec.post_processor),
                        std::move(spec.remarks), std::move(spec.rules_sha256)));
  absl::Status status = tokenizer->Validate();
  if (!status.ok()) return status;
  return tokenizer;
}

TokenizerScratchPtr BertTokenizer::NewScratch() const {
  return std::make_unique<OwnScratch>();
}

const std::string& BertTokenizer::algorithm() const {
  static const std::string* const name = new std::string("WordPiece");
  return *name;
}

int64_t BertTokenizer::EncodeText(absl::string_view text, bool offsets,
                                  Scratch* scratch, TextIds* out) const {
  auto* const own = static_cast<OwnScratch*>(scratch);
  if (offsets || !added().normalized.empty()) {
    EncodeSlow(text, offsets, own, out);
  } else {
    EncodeFast(text, own, out);
  }
  return 0;  // these steps put out at most three characters for one
}

void BertTokenizer::EncodeFast(absl::string_view text, OwnScratch* scratch,
                               TextIds* out) const {
  // A copy, so that every piece can end in a space and bytes can be read beyond
  // the end.
  const auto size = static_cast<int64_t>(text.size());
  char* const copy = scratch->copy.Reserve(size + TextEncoder::kTextSlack + 1);
  if (size > 0) std::memcpy(copy, text.data(), text.size());
  std::memset(copy + size, ' ', TextEncoder::kTextSlack + 1);
  int32_t* const ids = out->ids.Reserve(size + TextEncoder::kIdSlack);
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
  out->count = end - ids;
}

int32_t* BertTokenizer::EncodeNormal(absl::string_view text,
                                     absl::Span<const NormalChar> chars,
                                     int32_t* ids,
                                     std::vector<ByteOffset>* offsets,
                                     OwnScratch* scratch) const {
  const size_t before = offsets == nullptr ? 0 : offsets->size();
  int32_t* const end =
      encoder_.EncodeNormal(chars, ids, offsets, &scratch->encoder);
  if (offsets == nullptr || !trims_offsets()) return end;
  const std::vector<ByteOffset> whole(offsets->begin() + before,
                                      offsets->end());
  offsets->resize(before);
  for (const ByteOffset& place : whole) {
    AppendOffset(Token(*ids++), text, place, offsets);
  }
  return end;
}

void BertTokenizer::EncodeSlow(absl::string_view text, bool offsets,
                               OwnScratch* scratch, TextIds* out) const {
  std::vector<ByteOffset>* const places = offsets ? &out->offsets : nullptr;
  int32_t* const ids = out->ids.Reserve(static_cast<int64_t>(text.size()) +
                                        TextEncoder::kIdSlack);
  int32_t* end = ids;
  for (const AddedTokens::Piece& piece : scratch->pieces) {
    const auto begin = static_cast<int32_t>(piece.begin);
    const absl::string_view source =
        text.substr(piece.begin, piece.end - piece.begin);
    if (piece.id >= 0) {
      *end++ = piece.id;
      if (offsets) {
        AppendOffset(source, text, {begin, static_cast<int32_t>(piece.end)},
                     places);
      }
      continue;
    }
    std::vector<NormalChar>& normal = scratch->normal;
    BertNormalize(source, begin, encoder_.options(), &normal);
    const absl::Span<const NormalChar> chars(normal);
    if (added().normalized.empty()) {
      end = EncodeNormal(text, chars, end, places, scratch);
      continue;
    }
    std::string& normal_text = scratch->normal_text;
    normal_text.clear();
    scratch->starts.clear();
    for (size_t i = 0; i < normal.size(); ++i) {
      utf8::Append(normal[i].c, &normal_text);
      scratch->starts.resize(normal_text.size(), static_cast<int32_t>(i));
    }
    scratch->starts.push_back(static_cast<int32_t>(normal.size()));
    added().normalized.Split(normal_text, &scratch->normal_pieces);
    for (const AddedTokens::Piece& part : scratch->normal_pieces) {
      const int32_t first = scratch->starts[part.begin];
      const int32_t last = scratch->starts[part.end];
      if (part.id < 0) {
        end = EncodeNormal(text, chars.subspan(first, last - first), end,
                           places, scratch);
        continue;
      }
      *end++ = part.id;
      if (offsets) {
        AppendOffset(absl::string_view(normal_text)
                         .substr(part.begin, part.end - part.begin),
                     text, {normal[first].begin, normal[last - 1].end}, places);
      }
    }
  }
  out->count = end - ids;
}

}  // namespace encoderd
