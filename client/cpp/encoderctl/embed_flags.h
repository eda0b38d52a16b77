// Flags of the commands that ask for embeddings: what is to be computed.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_EMBED_FLAGS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_EMBED_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/cpp/encoderctl/invocation.h"

namespace encoderd::ctl {

class EmbedFlags {
 public:
  // --truncate, --windows, --normalize, --pooling, --dimensions, --prompt_name.
  // Must outlive the parsing.
  void Add(Invocation* invocation);

  // INVALID_ARGUMENT if two of them exclude each other.
  absl::Status Check(const Invocation& invocation) const;
  // What they came to; of no more use without Add and parsing.
  client::EmbedOptions ToOptions(const Invocation& invocation) const;

 private:
  v1::Pooling pooling_ = v1::POOLING_UNSPECIFIED;
  std::optional<bool> normalize_;
  std::string prompt_name_;
  int dimensions_ = 0;
  int windows_ = -1;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_EMBED_FLAGS_H_
