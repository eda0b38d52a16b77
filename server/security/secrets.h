// The certificates and tokens in use, and the thread that reloads them: it
// checks once per second whether the files were replaced. An invalid file ends
// the start; later it is logged and counted, and the previous version stays in
// use. Thread-safe.
#ifndef ENCODERD_SERVER_SECURITY_SECRETS_H_
#define ENCODERD_SERVER_SECURITY_SECRETS_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/security/certificates.h"
#include "server/security/token_table.h"
#include "server/security/watched.h"

namespace encoderd {

struct SecretFiles {
  CertificateFiles certificates;  // certificate empty: no TLS
  std::string tokens;             // empty: everyone may call

  bool tls() const { return !certificates.certificate.empty(); }
};

class Secrets {
 public:
  // INVALID_ARGUMENT names the flag, the file and the fault; so do UNAVAILABLE
  // and RESOURCE_EXHAUSTED, as ReadSecretFile has them.
  static absl::StatusOr<std::unique_ptr<Secrets>> Open(
      const SecretFiles& files);
  ~Secrets();

  // Reloads all files, changed or not: now, or soon on the thread that checks
  // them, for callers that must not wait for a disk.
  void Reload();
  void ReloadSoon();

  // The version in use; null: none.
  std::shared_ptr<const Certificates> certificates() const;
  std::shared_ptr<const TokenTable> tokens() const;

  ReloadFigures certificate_reloads() const;
  ReloadFigures token_reloads() const;

 private:
  explicit Secrets(const SecretFiles& files);
  absl::Status OpenAll();
  void Run();
  bool Wanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stop_ || reload_;
  }

  const SecretFiles files_;
  Watched<Certificates> certificates_;
  Watched<TokenTable> tokens_;

  Mutex mu_;
  CondVar wanted_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool reload_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // not started without files to check
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SECURITY_SECRETS_H_
