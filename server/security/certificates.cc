#include "server/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
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
using Context = std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, Freed<&SSL_free>>;

// Whether OpenSSL lacked memory since its errors were last cleared; clears
// them.
bool LackedMemory() {
  bool lacked = false;
  while (const unsigned long error = ERR_get_error()) {
    lacked = lacked || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
  }
  return lacked;
}

// A file with its name, for errors.
struct Pem {
  std::string name;  // "--tls_key_file=PATH"
  std::string text;

  absl::Status NoMemory() const {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": no memory for it"));
  }
  // What OpenSSL finds wrong may follow from a lack of memory.
  absl::Status Bad(absl::string_view why) const {
    if (LackedMemory()) return NoMemory();
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", why));
  }
  Bio Open() const {
    return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  }
};

absl::StatusOr<Pem> Read(const std::string& flag, const std::string& path) {
  auto text = ReadSecretFile(flag, path);
  if (!text.ok()) return text.status();
  Pem pem = {absl::StrCat(flag, "=", path), *std::move(text)};
  if (absl::StrContains(pem.text, '\0')) {
    return pem.Bad("has NUL bytes: it is not PEM");
  }
  return pem;
}

// Replaces the library's, which prompts at the terminal.
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
  if (chain.empty()) {
    return pem.Bad("has no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  }
  if (!at_end) {
    return pem.Bad(absl::StrCat("is corrupt after certificate ", chain.size()));
  }
  ERR_clear_error();
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

// Why it is not valid at `now`; empty: it is.
std::string WhyNotValid(const X509* certificate, absl::Time now) {
  const absl::Time begins = ToTime(X509_get0_notBefore(certificate));
  const absl::Time expires = ToTime(X509_get0_notAfter(certificate));
  if (now > expires) return absl::StrCat("expired on ", Words(expires));
  if (now < begins) {
    return absl::StrCat("is not valid before ", Words(begins));
  }
  return "";
}

// The server's certificate: for servers, and valid now.
absl::Status CheckLeaf(const Pem& pem, X509* leaf, absl::Time now) {
  const std::string why = WhyNotValid(leaf, now);
  if (!why.empty()) {
    return pem.Bad(
        absl::StrCat(why, "; replace the file with one that is valid now"));
  }
  if (X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0) != 1) {
    return pem.Bad(
        "is not valid for servers (its extendedKeyUsage lacks serverAuth)");
  }
  return absl::OkStatus();
}

// All of them CAs, and at least one valid now: an expired one next to its
// replacement is a rotation, but alone it would lock out every client.
absl::Status CheckAuthorities(const Pem& pem,
                              const std::vector<Certificate>& authorities,
                              absl::Time now) {
  bool any_valid = false;
  for (const Certificate& authority : authorities) {
    if (X509_check_ca(authority.get()) == 0) {
      return pem.Bad(
          "has a certificate that is not a CA (basicConstraints CA:TRUE)");
    }
    any_valid = any_valid || WhyNotValid(authority.get(), now).empty();
  }
  if (any_valid) return absl::OkStatus();
  return pem.Bad(absl::StrCat("has no CA that is valid now: certificate 1 ",
                              WhyNotValid(authorities.front().get(), now),
                              "; replace the file with valid CAs"));
}

// The first of them to expire.
absl::Time FirstExpiry(const std::vector<Certificate>& certificates) {
  absl::Time first = absl::InfiniteFuture();
  for (const Certificate& certificate : certificates) {
    first = std::min(first, ToTime(X509_get0_notAfter(certificate.get())));
  }
  return first;
}

// The latest error of OpenSSL, in words.
std::string LastError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "cannot be used; OpenSSL gives no reason"
                           : absl::StrCat("is rejected: ", reason);
}

// Forward secrecy only, as in gRPC's default; all of TLS 1.3.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

absl::StatusOr<std::shared_ptr<SSL_CTX>> NewContext(
    const Pem& certificate, const std::vector<Certificate>& chain,
    const Pem& key_file, EVP_PKEY* key) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                   &SSL_CTX_free);
  if (context == nullptr) return certificate.NoMemory();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), kCiphers);
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

// What clients that are built on gRPC's C core accept. OpenSSL also takes keys
// on P-521 and of Ed25519.
constexpr char kSignatures[] =
    "ECDSA+SHA256:rsa_pss_rsae_sha256:RSA+SHA256:ECDSA+SHA384:"
    "rsa_pss_rsae_sha384:RSA+SHA384:rsa_pss_rsae_sha512:RSA+SHA512";

// Both ends of a handshake in memory.
bool HandshakeWorks(SSL_CTX* server, int version) {
  const Context client(SSL_CTX_new(TLS_client_method()));
  if (client == nullptr) return false;
  if (SSL_CTX_set1_sigalgs_list(client.get(), kSignatures) != 1) return false;
  SSL_CTX_set_min_proto_version(client.get(), version);
  SSL_CTX_set_max_proto_version(client.get(), version);
  SSL_CTX_set_cipher_list(client.get(), kCiphers);
  const Ssl asks(SSL_new(client.get()));
  const Ssl answers(SSL_new(server));
  BIO* ends[2] = {};
  if (asks == nullptr || answers == nullptr) return false;
  if (BIO_new_bio_pair(&ends[0], 0, &ends[1], 0) != 1) return false;
  SSL_set_bio(asks.get(), ends[0], ends[0]);
  SSL_set_bio(answers.get(), ends[1], ends[1]);
  SSL_set_connect_state(asks.get());
  SSL_set_accept_state(answers.get());
  const auto waits = [](SSL* ssl, int result) {
    const int error = SSL_get_error(ssl, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  };
  for (;;) {
    const int asked = SSL_do_handshake(asks.get());
    if (asked != 1 && !waits(asks.get(), asked)) return false;
    const int answered = SSL_do_handshake(answers.get());
    if (answered != 1 && !waits(answers.get(), answered)) return false;
    if (asked == 1 && answered == 1) return true;
  }
}

// Checks of the files alone do not find a key of a kind that clients reject, or
// a chain that is too long for them.
absl::Status CheckHandshake(const Pem& certificate, SSL_CTX* context) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    if (!HandshakeWorks(context, version)) {
      return certificate.Bad(
          absl::StrCat("cannot be used for TLS 1.",
                       version == TLS1_2_VERSION ? 2 : 3, ": ", LastError(),
                       "; common clients accept RSA keys and keys on the "
                       "curves P-256 and P-384"));
    }
  }
  return absl::OkStatus();
}

// What `write` writes, in the form for gRPC: the parsed content of `pem` and
// nothing else from the file.
absl::StatusOr<std::string> Rewritten(const Pem& pem,
                                      absl::FunctionRef<int(BIO* to)> write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || write(bio.get()) != 1) return pem.NoMemory();
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::StatusOr<std::string> Rewritten(
    const Pem& pem, const std::vector<Certificate>& certificates) {
  return Rewritten(pem, [&](BIO* to) {
    return std::all_of(certificates.begin(), certificates.end(),
                       [to](const Certificate& certificate) {
                         return PEM_write_bio_X509(to, certificate.get()) == 1;
                       });
  });
}

absl::StatusOr<std::string> Rewritten(const Pem& pem, EVP_PKEY* key) {
  return Rewritten(pem, [key](BIO* to) {
    return PEM_write_bio_PKCS8PrivateKey(to, key, nullptr, nullptr, 0, nullptr,
                                         nullptr);
  });
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Certificates>> ReadCertificates(
    const CertificateFiles& files, absl::Time now) {
  ERR_clear_error();
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
  const absl::Status works = CheckHandshake(*certificate, context->get());
  if (!works.ok()) return works;

  auto read = std::make_shared<Certificates>();
  if (!files.client_ca.empty()) {
    const auto client_ca = Read("--tls_client_ca_file", files.client_ca);
    if (!client_ca.ok()) return client_ca.status();
    const auto authorities = ReadChain(*client_ca);
    if (!authorities.ok()) return authorities.status();
    const absl::Status valid = CheckAuthorities(*client_ca, *authorities, now);
    if (!valid.ok()) return valid;
    auto rewritten = Rewritten(*client_ca, *authorities);
    if (!rewritten.ok()) return rewritten.status();
    read->client_ca = *std::move(rewritten);
    read->client_ca_expires = FirstExpiry(*authorities);
  }
  auto rewritten_chain = Rewritten(*certificate, *chain);
  if (!rewritten_chain.ok()) return rewritten_chain.status();
  read->certificate = *std::move(rewritten_chain);
  auto rewritten_key = Rewritten(*key_file, key->get());
  if (!rewritten_key.ok()) return rewritten_key.status();
  read->key = *std::move(rewritten_key);
  read->expires = FirstExpiry(*chain);
  read->context = *std::move(context);
  return read;
}

std::string Describe(const Certificates& certificates) {
  const std::string server =
      absl::StrCat("expires ", Words(certificates.expires));
  if (certificates.client_ca.empty()) return server;
  return absl::StrCat(server, ", client CA expires ",
                      Words(certificates.client_ca_expires));
}

}  // namespace encoderd
