// The places of special tokens and texts in a finished encoding, and the
// segment of each: "[CLS] A [SEP]" and "[CLS] A [SEP] B:1 [SEP]:1". Constant
// after construction; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_TEMPLATE_H_
#define ENCODERD_ENGINE_TOKENIZER_TEMPLATE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {

struct TemplatePiece {
  enum Kind { kSpecial, kFirst, kSecond };
  Kind kind = kSpecial;
  int32_t id = 0;  // of the special token
  int32_t segment = 0;
};

// The ids of one text and, when they are wanted, their places in it.
struct TextTokens {
  absl::Span<const int32_t> ids;
  absl::Span<const ByteOffset> offsets;  // [ids] or empty
};

class Template {
 public:
  static constexpr size_t kMaxPieces = 64;

  // No special tokens: A, and A B:1.
  Template();
  Template(std::vector<TemplatePiece> single, std::vector<TemplatePiece> pair)
      : single_(std::move(single)), pair_(std::move(pair)) {}

  // BERT's: [CLS] A [SEP], and [CLS] A [SEP] B:1 [SEP]:1.
  static Template Bert(int32_t cls_id, int32_t sep_id);

  // RoBERTa's: cls A sep, and cls A sep sep B sep, all of segment 0.
  static Template Roberta(int32_t cls_id, int32_t sep_id);

  // DATA_LOSS unless each text occurs exactly once, ids are < vocab_size,
  // segments are 0 or 1 and the pieces at most kMaxPieces.
  absl::Status Validate(int32_t vocab_size) const;

  // All of segment 0 from now on; true: some were not.
  bool DropSegments();

  // Replaces *out. `second` is nullptr for a single text.
  void Apply(const TextTokens& first, const TextTokens* second, bool offsets,
             Encoding* out) const;
  // Tokenizer::Truncate.
  void Truncate(int64_t max_len, TruncateSide side, Encoding* encoding) const;

  int32_t num_special_tokens(bool pair) const;
  int32_t max_special_id() const;  // -1 without special tokens

 private:
  std::vector<TemplatePiece> single_;
  std::vector<TemplatePiece> pair_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_TEMPLATE_H_
