// The server's certificate, its key, and the client CAs: read from PEM files
// and checked before a connection depends on them.
#ifndef ENCODERD_SERVER_SECURITY_CERTIFICATES_H_
#define ENCODERD_SERVER_SECURITY_CERTIFICATES_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace encoderd {

struct CertificateFiles {
  std::string certificate;  // the server's, then its chain
  std::string key;          // without a password
  std::string client_ca;    // empty: clients need no certificate
};

struct Certificates {
  // PEM, rewritten from the parsed content: nothing else from the files.
  std::string certificate;
  std::string key;
  std::string client_ca;
  absl::Time expires;  // the first of the server's chain to do so
  // The first of the client CAs to expire; 1970 without any.
  absl::Time client_ca_expires = absl::UnixEpoch();
  // For a server with TLS 1.2 or later that requires no client certificates.
  std::shared_ptr<SSL_CTX> context;
};

// Errors of ReadSecretFile; RESOURCE_EXHAUSTED if OpenSSL reports a lack of
// memory; INVALID_ARGUMENT "FLAG=PATH: why": not PEM, a key
// that is not the certificate's or has a password, a certificate that has
// expired at `now`, is not valid yet, is not for servers or does not work in a
// handshake, client CAs of which one is not a CA or none is valid at `now`.
absl::StatusOr<std::shared_ptr<const Certificates>> ReadCertificates(
    const CertificateFiles& files, absl::Time now);

// "expires 2027-01-31 00:00:00 UTC", and the same of the client CAs, for the
// log.
std::string Describe(const Certificates& certificates);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SECURITY_CERTIFICATES_H_
