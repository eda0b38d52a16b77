// What a fake service asks of its callers: encryption, their certificate, a
// token. Thread-safe: plain values.
#ifndef ENCODERD_TESTS_SUPPORT_FAKE_DOOR_H_
#define ENCODERD_TESTS_SUPPORT_FAKE_DOOR_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <string>

namespace encoderd::testing {

struct FakeDoor {
  // A folder of make_certificates.sh, and which of its certificates the server
  // shows. Empty: no encryption.
  std::string certificates;
  std::string certificate = "server";
  // Whether every client must show a certificate of the same authority.
  bool asks_certificate = false;
  // What calls other than those of health must carry. Empty: nothing.
  std::string token;

  std::shared_ptr<grpc::ServerCredentials> Credentials() const;
  // OK, or the contract's refusal: BEARER_TOKEN_MISSING, _UNKNOWN.
  grpc::Status Check(const grpc::ServerContext& context) const;
};

}  // namespace encoderd::testing

#endif  // ENCODERD_TESTS_SUPPORT_FAKE_DOOR_H_
