#include "client/cpp/pem.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace encoderd::client {
namespace {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* owned) const {
    kFree(owned);
  }
};

using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

Bio Open(absl::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Null at the end of the certificates, or at one that is damaged.
Certificate ReadCertificate(BIO* from) {
  return Certificate(PEM_read_bio_X509(from, nullptr, nullptr, nullptr));
}

Key ReadKey(absl::string_view text) {
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  const Bio from = Open(text);
  Key key(PEM_read_bio_PrivateKey(from.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return key;
}

}  // namespace

bool HasPemBlock(absl::string_view text, absl::string_view label) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  return std::any_of(lines.begin(), lines.end(), [&](absl::string_view line) {
    line = absl::StripTrailingAsciiWhitespace(line);
    return absl::StartsWith(line, "-----BEGIN ") &&
           absl::EndsWith(line, absl::StrCat(label, "-----"));
  });
}

bool CanReadCertificates(absl::string_view text) {
  const Bio from = Open(text);
  bool some = false;
  ERR_clear_error();
  while (ReadCertificate(from.get()) != nullptr) some = true;
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return some && at_end;
}

bool CanReadKey(absl::string_view text) { return ReadKey(text) != nullptr; }

bool IsPair(absl::string_view certificates, absl::string_view key) {
  const Bio from = Open(certificates);
  const Certificate certificate = ReadCertificate(from.get());
  const Key read = ReadKey(key);
  const bool pair = certificate != nullptr && read != nullptr &&
                    X509_check_private_key(certificate.get(), read.get()) == 1;
  ERR_clear_error();
  return pair;
}

}  // namespace encoderd::client
