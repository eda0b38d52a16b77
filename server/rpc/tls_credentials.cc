#include "server/rpc/tls_credentials.h"

#include <string>

#include "absl/synchronization/mutex.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"

namespace encoderd {
namespace {

// For one port, which is told of each certificate once. gRPC asks for
// certificates at each new connection (its core API has that, its
// C++ API has not), and keeps those it has where it is told nothing new.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(const Secrets* secrets) : secrets_(secrets) {
    const auto asked =
        secrets->certificates()->client_ca.empty()
            ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
            : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asked, &TlsCredentials::Fetch, this));
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->Fetch(config);
  }

  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) {
    const auto now = secrets_->certificates();
    absl::MutexLock lock(&mu_);
    if (now == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    given_ = now;
    const grpc_ssl_pem_key_cert_pair pair = {now->key.c_str(),
                                             now->certificate.c_str()};
    // gRPC 1.51 ends the process if there are no client CAs, even if it
    // requires no client certificates and never uses them.
    const std::string& authorities =
        now->client_ca.empty() ? now->certificate : now->client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(),
                                                        &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const Secrets* const secrets_;
  grpc_server_credentials* credentials_ = nullptr;
  absl::Mutex mu_;
  std::shared_ptr<const Certificates> given_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(
    const Secrets* secrets) {
  return std::make_shared<TlsCredentials>(secrets);
}

}  // namespace encoderd
