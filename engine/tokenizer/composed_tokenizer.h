// What all tokenizers do alike around the way from text to ids: checks, added
// tokens' ids, the template, truncation, names of tokens.
//
// A derived class brings the vocabulary and EncodeText.
#ifndef ENCODERD_ENGINE_TOKENIZER_COMPOSED_TOKENIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_COMPOSED_TOKENIZER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/added_vocabulary.h"
#include "engine/tokenizer/buffer.h"
#include "engine/tokenizer/post_processor.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {

class ComposedTokenizer : public Tokenizer {
 public:
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
  const TokenizerRemarks& remarks() const override { return remarks_; }
  const std::string& rules_sha256() const override { return rules_sha256_; }

 protected:
  // The tokens of one text, without the template.
  struct TextIds {
    Buffer<int32_t> ids;
    int64_t count = 0;
    std::vector<ByteOffset> offsets;  // [count], only if asked for

    TextTokens View() const {
      return {{ids.data(), static_cast<size_t>(count)}, offsets};
    }
  };

  // Derived classes derive theirs.
  class Scratch : public TokenizerScratch {
   public:
    // Called after each text: gives back what a long one took.
    virtual void Shrink();

    TextIds texts[2];
    std::vector<AddedTokens::Piece> pieces;         // of the text
    std::vector<AddedTokens::Piece> normal_pieces;  // of the normalized one
  };

  ComposedTokenizer(AddedVocabulary added, PostProcessor post,
                    TokenizerRemarks remarks, std::string rules_sha256)
      : added_(std::move(added)),
        post_(std::move(post)),
        remarks_(std::move(remarks)),
        rules_sha256_(std::move(rules_sha256)) {}

  // DATA_LOSS where the template does not fit the vocabulary.
  absl::Status Validate() const { return post_.pieces.Validate(vocab_size()); }

  // Fills *out, one of scratch->texts, whose offsets are empty. `text` is
  // well-formed UTF-8 and scratch->pieces what added().raw makes of it. Returns
  // 0; or, of a text that grows beyond NormalText::Limit, to how many bytes at
  // least.
  virtual int64_t EncodeText(absl::string_view text, bool offsets,
                             Scratch* scratch, TextIds* out) const = 0;
  virtual const std::vector<std::string>& vocabulary() const = 0;  // [id]

  const AddedVocabulary& added() const { return added_; }

  // Appends the place in `text` of a token whose text is `value`.
  void AppendOffset(absl::string_view value, absl::string_view text,
                    ByteOffset place, std::vector<ByteOffset>* offsets) const {
    if (post_.trim_offsets) {
      TrimOffset(post_, value, text, offsets->empty(), &place);
    }
    offsets->push_back(place);
  }
  bool trims_offsets() const { return post_.trim_offsets; }

 private:
  // One text; `field` is the request field to blame.
  absl::Status EncodeOne(absl::string_view text, absl::string_view field,
                         bool offsets, Scratch* scratch, TextIds* out) const;

  AddedVocabulary added_;
  PostProcessor post_;
  TokenizerRemarks remarks_;
  std::string rules_sha256_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_COMPOSED_TOKENIZER_H_
