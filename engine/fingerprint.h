// A digest of all that determines a vector, so that a caller can tell whether
// two vectors may be compared.
#ifndef ENCODERD_ENGINE_FINGERPRINT_H_
#define ENCODERD_ENGINE_FINGERPRINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/model.h"

namespace encoderd {

// 16 hex digits of a SHA-256 of: the weights, what the products multiply, the
// settings of the encoder and of what follows it, max_len, prompts, and the
// tokens of a text in many scripts. Equal for equal files, on every device
// that computes in the same dtype. `info` is complete but for its fingerprint.
absl::StatusOr<std::string> Fingerprint(const ModelInfo& info,
                                        const Tokenizer& tokenizer);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_FINGERPRINT_H_
