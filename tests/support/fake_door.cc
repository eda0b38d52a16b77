#include "tests/support/fake_door.h"

#include "tests/support/fake_encoder_service.h"
#include "tests/support/read_all.h"

namespace encoderd::testing {
std::shared_ptr<grpc::ServerCredentials> FakeDoor::Credentials() const {
  if (certificates.empty()) return grpc::InsecureServerCredentials();
  const std::string base = certificates + "/";
  grpc::SslServerCredentialsOptions ssl(
      asks_certificate
          ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
          : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  ssl.pem_root_certs = asks_certificate ? ReadAll(base + "ca.pem") : "";
  ssl.pem_key_cert_pairs.push_back({ReadAll(base + certificate + ".key"),
                                    ReadAll(base + certificate + ".pem")});
  return grpc::SslServerCredentials(ssl);
}

grpc::Status FakeDoor::Check(const grpc::ServerContext& context) const {
  if (token.empty()) return grpc::Status::OK;
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) {
    return FakeError(grpc::StatusCode::UNAUTHENTICATED,
                     "the call carries no token", "BEARER_TOKEN_MISSING", {});
  }
  if (metadata.count("authorization") == 1 &&
      found->second == "Bearer " + token) {
    return grpc::Status::OK;
  }
  return FakeError(grpc::StatusCode::UNAUTHENTICATED,
                   "the call's token is not known", "BEARER_TOKEN_UNKNOWN", {});
}

}  // namespace encoderd::testing
