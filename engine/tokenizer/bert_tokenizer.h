// The Tokenizer of BERT's family: added tokens, normaliser, words, WordPiece,
// template. Tokenizer::Load makes one.
#ifndef ENCODERD_ENGINE_TOKENIZER_BERT_TOKENIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_BERT_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/template.h"
#include "engine/tokenizer/text_encoder.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/tokenizer_spec.h"

namespace encoderd {

class BertTokenizer : public Tokenizer {
 public:
  // DATA_LOSS where the parts of `spec` do not fit each other.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Create(
      TokenizerSpec spec);

  TokenizerScratchPtr NewScratch() const override;
  absl::Status Encode(absl::string_view text, const EncodeOptions& options,
                      TokenizerScratch* scratch, Encoding* out) const override;
  absl::Status EncodePair(absl::string_view first, absl::string_view second,
                          const EncodeOptions& options,
                          TokenizerScratch* scratch,
                          Encoding* out) const override;
  void Truncate(int64_t max_len, TruncateSide side,
                Encoding* encoding) const override;
  int32_t vocab_size() const override;
  absl::string_view Token(int32_t id) const override;
  bool is_special(int32_t id) const override;
  int32_t num_special_tokens(bool pair) const override;
  const std::string& algorithm() const override;
  const std::vector<std::string>& notes() const override { return notes_; }

 private:
  class Scratch;

  BertTokenizer(TextEncoder encoder, AddedTokens raw, AddedTokens normalized)
      : encoder_(std::move(encoder)),
        raw_tokens_(std::move(raw)),
        normalized_tokens_(std::move(normalized)) {}

  // The ids (and offsets) of one text, without the template, in
  // scratch->texts[which]. `field` is the request field to blame.
  absl::Status EncodeText(absl::string_view text, absl::string_view field,
                          int which, const EncodeOptions& options,
                          Scratch* scratch) const;
  void EncodeFast(absl::string_view text, int which, Scratch* scratch) const;
  void EncodeSlow(absl::string_view text, int which, bool offsets,
                  Scratch* scratch) const;

  TextEncoder encoder_;
  AddedTokens raw_tokens_;         // looked for in the text as it is
  AddedTokens normalized_tokens_;  // looked for in the normalised text
  Template template_;
  std::vector<std::string> beyond_;   // added tokens after the vocabulary [i]
  std::vector<int32_t> special_ids_;  // sorted
  std::vector<std::string> notes_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_BERT_TOKENIZER_H_
