// The Tokenizer of BERT's family: added tokens, normalizer, words, WordPiece,
// template. Normalizer and words are one pass over tables (text_encoder.h).
// Tokenizer::Load makes one.
#ifndef ENCODERD_ENGINE_TOKENIZER_WORDPIECE_BERT_TOKENIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_WORDPIECE_BERT_TOKENIZER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/composed_tokenizer.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/wordpiece/text_encoder.h"

namespace encoderd {

class BertTokenizer : public ComposedTokenizer {
 public:
  // True when `spec` is what this class is for: WordPiece, BertPreTokenizer,
  // and BertNormalizer or none.
  static bool Fits(const TokenizerSpec& spec);

  // `spec` must fit. DATA_LOSS where its parts do not fit each other.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Create(
      TokenizerSpec spec);

  TokenizerScratchPtr NewScratch() const override;
  const std::string& algorithm() const override;

 private:
  class OwnScratch;

  BertTokenizer(TextEncoder encoder, AddedVocabulary added, PostProcessor post,
                TokenizerRemarks remarks, std::string rules_sha256)
      : ComposedTokenizer(std::move(added), std::move(post), std::move(remarks),
                          std::move(rules_sha256)),
        encoder_(std::move(encoder)) {}

  int64_t EncodeText(absl::string_view text, bool offsets, Scratch* scratch,
                     TextIds* out) const override;
  const std::vector<std::string>& vocabulary() const override {
    return encoder_.word_piece().vocabulary();
  }

  void EncodeFast(absl::string_view text, OwnScratch* scratch,
                  TextIds* out) const;
  void EncodeSlow(absl::string_view text, bool offsets, OwnScratch* scratch,
                  TextIds* out) const;
  // Ids of a normalized part; returns their end.
  int32_t* EncodeNormal(absl::string_view text,
                        absl::Span<const NormalChar> chars, int32_t* ids,
                        std::vector<ByteOffset>* offsets,
                        OwnScratch* scratch) const;

  TextEncoder encoder_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_WORDPIECE_BERT_TOKENIZER_H_
