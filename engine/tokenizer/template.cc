#include "engine/tokenizer/template.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

absl::Status ValidatePieces(const std::vector<TemplatePiece>& pieces,
                            int second_texts, int32_t vocab_size) {
  if (pieces.size() > Template::kMaxPieces) {
    return absl::DataLossError(absl::StrCat("the template has ", pieces.size(),
                                            " pieces; at most ",
                                            Template::kMaxPieces));
  }
  int texts[2] = {0, 0};
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::kFirst) ++texts[0];
    if (piece.kind == TemplatePiece::kSecond) ++texts[1];
    if (piece.kind == TemplatePiece::kSpecial &&
        (piece.id < 0 || piece.id >= vocab_size)) {
      return absl::DataLossError(
          absl::StrCat("the template's special token id ", piece.id,
                       " is not in the vocabulary of ", vocab_size));
    }
    if (piece.segment != 0 && piece.segment != 1) {
      return absl::DataLossError(absl::StrCat(
          "the template's segment ", piece.segment, " is neither 0 nor 1"));
    }
  }
  if (texts[0] != 1 || texts[1] != second_texts) {
    return absl::DataLossError(
        absl::StrCat("the template has A ", texts[0], " times and B ", texts[1],
                     " times; each text must occur exactly once"));
  }
  return absl::OkStatus();
}

// Keeps `kept` tokens of `values` at [begin, begin + count), the first or the
// last of them.
template <typename T>
void Keep(int64_t begin, int64_t count, int64_t kept, TruncateSide side,
          std::vector<T>* values) {
  if (values->empty()) return;
  const int64_t from = side == TruncateSide::kEnd ? begin + kept : begin;
  values->erase(values->begin() + from,
                values->begin() + from + (count - kept));
}

}  // namespace

Template::Template()
    : single_{{TemplatePiece::kFirst, 0, 0}},
      pair_{{TemplatePiece::kFirst, 0, 0}, {TemplatePiece::kSecond, 0, 1}} {}

Template Template::Bert(int32_t cls_id, int32_t sep_id) {
  using Piece = TemplatePiece;
  return Template({{Piece::kSpecial, cls_id, 0},
                   {Piece::kFirst, 0, 0},
                   {Piece::kSpecial, sep_id, 0}},
                  {{Piece::kSpecial, cls_id, 0},
                   {Piece::kFirst, 0, 0},
                   {Piece::kSpecial, sep_id, 0},
                   {Piece::kSecond, 0, 1},
                   {Piece::kSpecial, sep_id, 1}});
}

Template Template::Roberta(int32_t cls_id, int32_t sep_id) {
  using Piece = TemplatePiece;
  const Piece cls = {Piece::kSpecial, cls_id, 0};
  const Piece sep = {Piece::kSpecial, sep_id, 0};
  return Template(
      {cls, {Piece::kFirst, 0, 0}, sep},
      {cls, {Piece::kFirst, 0, 0}, sep, sep, {Piece::kSecond, 0, 0}, sep});
}

absl::Status Template::Validate(int32_t vocab_size) const {
  absl::Status status = ValidatePieces(single_, 0, vocab_size);
  if (status.ok()) status = ValidatePieces(pair_, 1, vocab_size);
  return status;
}

bool Template::DropSegments() {
  bool dropped = false;
  for (std::vector<TemplatePiece>* pieces : {&single_, &pair_}) {
    for (TemplatePiece& piece : *pieces) {
      dropped = dropped || piece.segment != 0;
      piece.segment = 0;
    }
  }
  return dropped;
}

int32_t Template::num_special_tokens(bool pair) const {
  const auto& pieces = pair ? pair_ : single_;
  return static_cast<int32_t>(
      std::count_if(pieces.begin(), pieces.end(), [](const TemplatePiece& x) {
        return x.kind == TemplatePiece::kSpecial;
      }));
}

int32_t Template::max_special_id() const {
  int32_t max = -1;
  for (const auto* pieces : {&single_, &pair_}) {
    for (const TemplatePiece& piece : *pieces)
      if (piece.kind == TemplatePiece::kSpecial) max = std::max(max, piece.id);
  }
  return max;
}

void Template::Apply(const TextTokens& first, const TextTokens* second,
                     bool offsets, Encoding* out) const {
  out->Clear();
  const bool pair = second != nullptr;
  out->pair = pair;
  out->text_tokens = {static_cast<int64_t>(first.ids.size()),
                      pair ? static_cast<int64_t>(second->ids.size()) : 0};
  const size_t count = first.ids.size() + (pair ? second->ids.size() : 0) +
                       num_special_tokens(pair);
  out->token_ids.reserve(count);
  out->segment_ids.reserve(count);
  for (const TemplatePiece& piece : pair ? pair_ : single_) {
    size_t added = 1;
    if (piece.kind == TemplatePiece::kSpecial) {
      out->token_ids.push_back(piece.id);
      if (offsets) out->offsets.push_back({0, 0});
    } else {
      const TextTokens& text =
          piece.kind == TemplatePiece::kFirst ? first : *second;
      added = text.ids.size();
      out->text_begins[piece.kind == TemplatePiece::kFirst ? 0 : 1] =
          static_cast<int64_t>(out->token_ids.size());
      out->token_ids.insert(out->token_ids.end(), text.ids.begin(),
                            text.ids.end());
      if (offsets) {
        out->offsets.insert(out->offsets.end(), text.offsets.begin(),
                            text.offsets.end());
      }
    }
    out->segment_ids.insert(out->segment_ids.end(), added, piece.segment);
    if (offsets) {
      out->special.insert(out->special.end(), added,
                          piece.kind == TemplatePiece::kSpecial ? 1 : 0);
    }
  }
}

void Template::Truncate(int64_t max_len, TruncateSide side,
                        Encoding* encoding) const {
  const auto& pieces = encoding->pair ? pair_ : single_;
  const int64_t room =
      std::max<int64_t>(0, max_len - num_special_tokens(encoding->pair));
  const auto [first, second] = encoding->text_tokens;
  if (first + second <= room) return;
  // The shorter text is whole as long as the longer one is not cut to less.
  int64_t kept_short = std::min(first, second);
  int64_t kept_long = std::max(kept_short, room - kept_short);
  if (kept_short + kept_long > room) {
    kept_short = room / 2;
    kept_long = room - kept_short;
  }
  const std::array<int64_t, 2> kept = first > second
                                          ? std::array{kept_long, kept_short}
                                          : std::array{kept_short, kept_long};
  int64_t at = 0;
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::kSpecial) {
      ++at;
      continue;
    }
    const int text = piece.kind == TemplatePiece::kFirst ? 0 : 1;
    const int64_t count = encoding->text_tokens[text];
    Keep(at, count, kept[text], side, &encoding->token_ids);
    Keep(at, count, kept[text], side, &encoding->segment_ids);
    Keep(at, count, kept[text], side, &encoding->offsets);
    Keep(at, count, kept[text], side, &encoding->special);
    encoding->text_begins[text] = at;
    encoding->text_tokens[text] = kept[text];
    at += kept[text];
  }
}

}  // namespace encoderd
