#include "server/security/secrets.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/start_thread.h"
#include "server/base/steady_time.h"
#include "server/security/secret_file.h"

namespace encoderd {
namespace {

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr char kTokenFlag[] = "--bearer_token_file";

absl::StatusOr<std::shared_ptr<const TokenTable>> ReadTokens(
    const std::string& path, const TokenTable* before) {
  const auto text = ReadSecretFile(kTokenFlag, path);
  if (!text.ok()) return text.status();
  auto table = TokenTable::Parse(*text, before);
  if (table.ok()) return table;
  return absl::InvalidArgumentError(
      absl::StrCat(kTokenFlag, "=", path, ": ", table.status().message()));
}

}  // namespace

Secrets::Secrets(const SecretFiles& files)
    : files_(files),
      certificates_("certificates",
                    {files.certificates.certificate, files.certificates.key,
                     files.certificates.client_ca},
                    [this](const Certificates*) {
                      return ReadCertificates(files_.certificates, absl::Now());
                    }),
      tokens_("bearer_tokens", {files.tokens},
              [this](const TokenTable* before) {
                return ReadTokens(files_.tokens, before);
              }) {}

Secrets::~Secrets() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mu_);
    stop_ = true;
    wanted_.NotifyAll(&mu_);
  }
  thread_.join();
}

absl::StatusOr<std::unique_ptr<Secrets>> Secrets::Open(
    const SecretFiles& files) {
  auto secrets = absl::WrapUnique(new Secrets(files));
  const absl::Status status = secrets->OpenAll();
  if (!status.ok()) return status;
  return secrets;
}

absl::Status Secrets::OpenAll() {
  if (files_.tls()) {
    const absl::Status status = certificates_.Open();
    if (!status.ok()) return status;
  }
  if (!files_.tokens.empty()) {
    const absl::Status status = tokens_.Open();
    if (!status.ok()) return status;
  }
  if (files_.tls() || !files_.tokens.empty()) {
    thread_ = StartThread("secrets", [this] { Run(); });
  }
  return absl::OkStatus();
}

void Secrets::Run() {
  for (;;) {
    bool reload = false;
    {
      MutexLock lock(&mu_);
      const absl::Time look = SteadyNow() + kLook;
      while (!Wanted() && SteadyNow() < look) wanted_.WaitUntil(&mu_, look);
      if (stop_) return;
      reload = std::exchange(reload_, false);
    }
    if (reload) {
      Reload();
      continue;
    }
    if (files_.tls()) certificates_.Look();
    if (!files_.tokens.empty()) tokens_.Look();
  }
}

void Secrets::ReloadSoon() {
  MutexLock lock(&mu_);
  reload_ = true;
  wanted_.NotifyAll(&mu_);
}

void Secrets::Reload() {
  if (files_.tls()) certificates_.Reload();
  if (!files_.tokens.empty()) tokens_.Reload();
}

std::shared_ptr<const Certificates> Secrets::certificates() const {
  return certificates_.value();
}

std::shared_ptr<const TokenTable> Secrets::tokens() const {
  return tokens_.value();
}

ReloadFigures Secrets::certificate_reloads() const {
  return certificates_.figures();
}

ReloadFigures Secrets::token_reloads() const { return tokens_.figures(); }

}  // namespace encoderd
