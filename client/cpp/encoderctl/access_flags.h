// Flags of encryption, certificates and the token, and the environment's
// defaults for them. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_ACCESS_FLAGS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_ACCESS_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cpp/encoderctl/encoderctl.h"
#include "client/cpp/encoderctl/flags.h"
#include "client/cpp/options.h"

namespace encoderd::ctl {

struct AccessFlags {
  // Adds one flag for each of them. They must stay where they are.
  void AddTo(Flags* flags);

  // Sets what they and the environment say in `options`. A flag wins over
  // every variable that says something of the same; an empty one means none.
  // INVALID_ARGUMENT names variables that no one can follow; files are not
  // read yet.
  absl::Status Fill(const Variables& variables,
                    client::ClientOptions* options) const;

  std::optional<bool> tls;
  std::optional<std::string> ca_file;
  std::optional<std::string> certificate_file;
  std::optional<std::string> key_file;
  std::optional<std::string> token_file;
  std::optional<std::string> server_name;
};

// An error of the client library in the flags of this program: "(tls, ca_file)"
// as "(--tls, --ca_file)". What gRPC says in it stays as it is.
std::string InFlags(absl::string_view words);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_ACCESS_FLAGS_H_
