// One input -> ids that the model's tables hold, or why not.
//
// Text goes through the Tokenizer, is compared with max_len and cut only if
// asked for; id lists are checked and used as they are. Constant after
// construction, shared by the tokenizer threads.
#ifndef ENCODERD_SERVER_PIPELINE_INPUT_ENCODER_H_
#define ENCODERD_SERVER_PIPELINE_INPUT_ENCODER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/batch.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

struct EncodedInput {
  absl::Status status;  // complete (MakeInputFault); the rest but token_count
                        // means nothing unless it is OK
  TokenSequence sequence;
  int64_t token_count = 0;  // before any cut
  bool truncated = false;
};

class InputEncoder {
 public:
  InputEncoder(const Tokenizer* tokenizer, const IdLimits& limits)
      : tokenizer_(*tokenizer), limits_(limits) {}

  // Errors of Tokenizer::Encode and ValidateSequence; INTERNAL_FAULT if
  // something throws. buffer: any Encoding, reused from call to call. An id
  // list is moved out of `input`.
  absl::Status Encode(PipelineInput* input, TruncateMode truncate,
                      TokenizerScratch* scratch, Encoding* buffer,
                      EncodedInput* out) const;

  // The same without max_len and without a cut, for people to look at. An id
  // list comes back with its segments filled in.
  absl::Status Tokenize(const PipelineInput& input,
                        const Tokenizer::EncodeOptions& options,
                        TokenizerScratch* scratch, Encoding* out) const;

  // Tokens as far as they can be known before tokenising: exact for id lists
  // (*exact stays as it is), else a guess (*exact becomes false).
  int64_t EstimateTokens(const PipelineInput& input, bool* exact) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const IdLimits& limits() const { return limits_; }

 private:
  const Tokenizer& tokenizer_;
  const IdLimits limits_;
};

// Bytes that `input` holds while it waits.
int64_t InputBytes(const PipelineInput& input);
// The name of its field in the contract: "text", "pair", "tokens".
absl::string_view ContentName(const PipelineInput& input);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_INPUT_ENCODER_H_
