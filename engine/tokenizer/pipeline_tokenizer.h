// A Tokenizer of parts that know nothing of each other: normalizer,
// pre-tokenizer, model, post-processor, as tokenizer.json names them. Words
// seen lately come from a cache. Tokenizer::Load makes one.
#ifndef ENCODERD_ENGINE_TOKENIZER_PIPELINE_TOKENIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_PIPELINE_TOKENIZER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/composed_tokenizer.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/normal_text.h"
#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/token_model.h"

namespace encoderd {

class PipelineTokenizer : public ComposedTokenizer {
 public:
  // DATA_LOSS where the parts of `spec` do not fit each other.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Create(
      TokenizerSpec spec);

  TokenizerScratchPtr NewScratch() const override;
  const std::string& algorithm() const override { return model_->algorithm(); }

 private:
  class OwnScratch;

  PipelineTokenizer(Normalizer normalizer, PreTokenizer pre_tokenizer,
                    std::unique_ptr<const TokenModel> model,
                    AddedVocabulary added, PostProcessor post,
                    TokenizerRemarks remarks, std::string rules_sha256)
      : ComposedTokenizer(std::move(added), std::move(post), std::move(remarks),
                          std::move(rules_sha256)),
        normalizer_(std::move(normalizer)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        model_(std::move(model)) {}

  int64_t EncodeText(absl::string_view text, bool offsets, Scratch* scratch,
                     TextIds* out) const override;
  const std::vector<std::string>& vocabulary() const override {
    return model_->vocabulary();
  }

  // Appends the tokens of a part of scratch->normal. Returns as EncodeText.
  int64_t EncodePart(absl::string_view text, TextRange part, bool offsets,
                     OwnScratch* scratch,
                     std::vector<ByteOffset>* places) const;
  void EncodeWords(const PreTokenizer::Words& words, OwnScratch* scratch) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<const TokenModel> model_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_PIPELINE_TOKENIZER_H_
