// One input -> valid ids for the model's tables, or an error.
//
// Text goes through the Tokenizer, is compared with max_len and cut only if
// requested; id lists, checked before (input.h), are used as they are. Constant
// after construction, shared by the threads that tokenize.
#ifndef ENCODERD_SERVER_PIPELINE_INPUT_ENCODER_H_
#define ENCODERD_SERVER_PIPELINE_INPUT_ENCODER_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/batch.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/pipeline/request.h"
#include "server/pipeline/windows.h"

namespace encoderd {

// A tokenized Input.
struct TokenizedInput {
  absl::Status status;  // complete (MakeInputFault); the rest but token_count
                        // means nothing unless it is OK
  TokenSequence sequence;   // with windows: the whole text, uncut
  int64_t token_count = 0;  // before any cut
  bool truncated = false;
  int64_t tokens = 0;      // to compute, those of all windows
  int64_t windows = 0;     // 0: it fits, or windows were not requested
  int64_t text_begin = 0;  // with windows: of the text's tokens
  int64_t text_tokens = 0;
  std::vector<TextRange> span;  // without_special_tokens: rows to give
};

// What the inputs of one request share (PipelineRequest).
struct EncodeRules {
  TruncateMode truncate = TruncateMode::kNone;
  std::optional<int32_t> window_overlap;
  bool without_special_tokens = false;
  bool any_length = false;  // ids only: max_len is no limit
  std::string prompt_name;  // as in PipelineRequest
};

class InputEncoder {
 public:
  // max_request_tokens: of one request; ids of texts in windows, and of texts
  // only tokenized, beyond it are counted, not kept.
  InputEncoder(const Tokenizer* tokenizer, const IdLimits& limits,
               int64_t max_request_tokens = std::numeric_limits<int64_t>::max())
      : tokenizer_(*tokenizer),
        limits_(limits),
        max_request_tokens_(max_request_tokens) {}

  // Errors of Tokenizer::Encode and ValidateSequence; INTERNAL_FAULT if
  // something throws. buffer: any Encoding, reused from call to call. An id
  // list is moved out of `input`. A rejected input keeps its token_count but no
  // ids: it may be one of a thousand long ones.
  absl::Status Encode(Input* input, const EncodeRules& rules,
                      TokenizerScratch* scratch, Encoding* buffer,
                      TokenizedInput* out) const;

  // The same without max_len and without a cut, for display. An id list comes
  // back with its segments filled in. Offsets, which take several times the
  // memory of ids, are omitted for a large text with more than max_ids.
  absl::Status Tokenize(const Input& input,
                        const Tokenizer::EncodeOptions& options,
                        int64_t max_ids, TokenizerScratch* scratch,
                        Encoding* out) const;

  // Tokens as far as they can be known before tokenizing: exact for id lists
  // (*exact is unchanged), else a guess (*exact becomes false).
  int64_t EstimateTokens(const Input& input, const EncodeRules& rules,
                         bool* exact) const;

  // How a text is cut into windows.
  WindowRule RuleOf(int32_t overlap) const {
    return {limits_.max_len, tokenizer_.num_special_tokens(false), overlap};
  }

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const IdLimits& limits() const { return limits_; }
  int64_t max_request_tokens() const { return max_request_tokens_; }

 private:
  absl::Status EncodeKept(Input* input, const EncodeRules& rules,
                          TokenizerScratch* scratch, Encoding* buffer,
                          TokenizedInput* out) const;

  const Tokenizer& tokenizer_;
  const IdLimits limits_;
  const int64_t max_request_tokens_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_INPUT_ENCODER_H_
