// The certificates and tokens in use, and the thread that reads them again:
// once a second it looks whether the files were replaced. What is wrong at the
// start ends the start; later it is logged and counted, and what was read
// before stays in use. Thread-safe.
#ifndef ENCODERD_SERVER_SECURITY_SECRETS_H_
#define ENCODERD_SERVER_SECURITY_SECRETS_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
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
  // INVALID_ARGUMENT names the flag, the file and what is wrong with it.
  static absl::StatusOr<std::unique_ptr<Secrets>> Open(
      const SecretFiles& files);
  ~Secrets();

  // Reads all files again, changed or not: now, or soon and on the thread that
  // looks at them, for callers that must not wait for a disk.
  void Reload();
  void ReloadSoon();

  // What is in use; null: there is none.
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

  absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool reload_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // not started where there is no file to look at
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SECURITY_SECRETS_H_
