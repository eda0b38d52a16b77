#include "server/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "server/security/secret_file.h"

namespace encoderd {
namespace {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<&BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<&X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;

// A file with its name, for what is wrong with it.
struct Pem {
  std::string name;  // "--tls_key_file=PATH"
  std::string text;

  absl::Status Bad(absl::string_view why) const {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", why));
  }
  Bio Open() const {
    return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  }
};

absl::StatusOr<Pem> Read(const std::string& flag, const std::string& path) {
  auto text = ReadSecretFile(flag, path);
  if (!text.ok()) return text.status();
  return Pem{absl::StrCat(flag, "=", path), *std::move(text)};
}

// Instead of the library's own, which asks at the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

// At least one.
absl::StatusOr<std::vector<Certificate>> ReadChain(const Pem& pem) {
  const Bio bio = pem.Open();
  std::vector<Certificate> chain;
  for (;;) {
    Certificate next(
        PEM_read_bio_X509(bio.get(), nullptr, &NoPassword, nullptr));
    if (next == nullptr) break;
    chain.push_back(std::move(next));
  }
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (chain.empty()) return pem.Bad("has no certificate in PEM");
  if (!at_end) {
    return pem.Bad(absl::StrCat("is broken after certificate ", chain.size()));
  }
  return chain;
}

absl::StatusOr<Key> ReadKey(const Pem& pem) {
  const Bio bio = pem.Open();
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) {
    return pem.Bad(
        "has no private key in PEM that can be read without a "
        "password");
  }
  return key;
}

absl::Time ToTime(const ASN1_TIME* time) {
  tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string Words(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

// The server's own: for servers, and valid now.
absl::Status CheckLeaf(const Pem& pem, X509* leaf, absl::Time now) {
  const absl::Time begins = ToTime(X509_get0_notBefore(leaf));
  const absl::Time expires = ToTime(X509_get0_notAfter(leaf));
  if (now > expires) {
    return pem.Bad(absl::StrCat("expired on ", Words(expires)));
  }
  if (now < begins) {
    return pem.Bad(absl::StrCat("is not valid before ", Words(begins)));
  }
  if (X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0) != 1) {
    return pem.Bad(
        "is not valid for servers (its extendedKeyUsage lacks serverAuth)");
  }
  return absl::OkStatus();
}

// The latest error of OpenSSL, in words.
std::string LastError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "is refused"
                           : absl::StrCat("is refused: ", reason);
}

absl::StatusOr<std::shared_ptr<SSL_CTX>> NewContext(
    const Pem& certificate, const std::vector<Certificate>& chain,
    const Pem& key_file, EVP_PKEY* key) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                   &SSL_CTX_free);
  if (context == nullptr) return certificate.Bad("no memory for it");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  if (SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return certificate.Bad(LastError());
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return certificate.Bad(LastError());
    }
  }
  if (X509_check_private_key(chain.front().get(), key) != 1) {
    return key_file.Bad(absl::StrCat("is not the key of the certificate in ",
                                     certificate.name));
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return key_file.Bad(LastError());
  }
  return context;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Certificates>> ReadCertificates(
    const CertificateFiles& files, absl::Time now) {
  const auto certificate = Read("--tls_certificate_file", files.certificate);
  if (!certificate.ok()) return certificate.status();
  const auto chain = ReadChain(*certificate);
  if (!chain.ok()) return chain.status();
  const absl::Status leaf = CheckLeaf(*certificate, chain->front().get(), now);
  if (!leaf.ok()) return leaf;
  const auto key_file = Read("--tls_key_file", files.key);
  if (!key_file.ok()) return key_file.status();
  const auto key = ReadKey(*key_file);
  if (!key.ok()) return key.status();
  auto context = NewContext(*certificate, *chain, *key_file, key->get());
  if (!context.ok()) return context.status();

  auto read = std::make_shared<Certificates>();
  if (!files.client_ca.empty()) {
    const auto client_ca = Read("--tls_client_ca_file", files.client_ca);
    if (!client_ca.ok()) return client_ca.status();
    const auto authorities = ReadChain(*client_ca);
    if (!authorities.ok()) return authorities.status();
    for (const Certificate& authority : *authorities) {
      if (X509_check_ca(authority.get()) == 0) {
        return client_ca->Bad(
            "has a certificate that is not a CA (basicConstraints CA:TRUE)");
      }
    }
    read->client_ca = client_ca->text;
  }
  read->certificate = certificate->text;
  read->key = key_file->text;
  read->expires = ToTime(X509_get0_notAfter(chain->front().get()));
  read->context = *std::move(context);
  return read;
}

}  // namespace encoderd
