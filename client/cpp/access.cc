#include "client/cpp/access.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/loopback.h"
#include "client/cpp/pem.h"

namespace encoderd::client {
namespace {

constexpr int64_t kMostFileBytes = 4 << 20;
constexpr size_t kMostTokenBytes = 4096;  // as the server has it

template <typename... Parts>
absl::Status Refused(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::string Named(absl::string_view option, absl::string_view path) {
  return absl::StrCat(option, " \"", path, "\"");
}

absl::StatusOr<std::string> ReadFile(absl::string_view option,
                                     const std::string& path) {
  const std::string name = Named(option, path);
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    return Refused(name, " cannot be read: ", std::strerror(errno));
  }
  const absl::Cleanup close = [file] { std::fclose(file); };
  std::string content(kMostFileBytes + 1, '\0');
  content.resize(std::fread(content.data(), 1, content.size(), file));
  if (std::ferror(file) != 0) {
    return Refused(name, " cannot be read: ", std::strerror(errno));
  }
  if (content.size() > kMostFileBytes) {
    return Refused(name, " has more than ", kMostFileBytes, " bytes");
  }
  return content;
}

// Reads a file of PEM, if there is one, into `content`.
absl::Status ReadPem(absl::string_view option, const std::string& path,
                     absl::string_view label, std::string* content) {
  if (path.empty()) return absl::OkStatus();
  auto read = ReadFile(option, path);
  if (!read.ok()) return read.status();
  if (!HasPemBlock(*read, label)) {
    return Refused(Named(option, path), " has no ",
                   absl::AsciiStrToLower(label), " in PEM (-----BEGIN ", label,
                   "-----)");
  }
  *content = *std::move(read);
  return absl::OkStatus();
}

absl::Status ReadCertificates(absl::string_view option, const std::string& path,
                              std::string* content) {
  const absl::Status read = ReadPem(option, path, "CERTIFICATE", content);
  if (!read.ok() || path.empty() || CanReadCertificates(*content)) return read;
  return Refused(Named(option, path), " has a damaged certificate");
}

// Options that say one thing and its opposite.
absl::Status CheckTls(const ClientOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    const bool key = options.certificate_file.empty();
    return Refused(key ? Named("key_file", options.key_file)
                       : Named("certificate_file", options.certificate_file),
                   " needs ", key ? "certificate_file" : "key_file",
                   ": give both or none");
  }
  if (UsesTls(options)) return absl::OkStatus();
  const std::pair<const char*, const std::string&> needs_tls[] = {
      {"ca_file", options.ca_file},
      {"certificate_file", options.certificate_file},
      {"server_name", options.server_name}};
  for (const auto& [name, value] : needs_tls) {
    if (value.empty()) continue;
    return Refused(Named(name, value), " is for TLS, but tls is ",
                   options.tls.has_value() ? "false" : "not set",
                   ": turn tls on or leave ", name, " out");
  }
  return absl::OkStatus();
}

// `source` is the option, with its file.
absl::Status CheckToken(absl::string_view source, absl::string_view token) {
  if (token.empty()) return Refused(source, " is empty: it must hold a token");
  if (token.size() > kMostTokenBytes) {
    return Refused(source, " has ", token.size(),
                   " bytes; a token has at most ", kMostTokenBytes);
  }
  const auto bad = std::find_if_not(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(c);
  });
  if (bad == token.end()) return absl::OkStatus();
  return Refused(source, " has a character that a header cannot carry, at ",
                 "byte ", bad - token.begin() + 1,
                 ": a token is visible ASCII only");
}

// The token; empty: none.
absl::StatusOr<std::string> ReadToken(const ClientOptions& options) {
  if (options.token.has_value() && !options.token_file.empty()) {
    return Refused("both token and token_file are set; use one");
  }
  if (options.token.has_value()) {
    const absl::Status checked = CheckToken("token", *options.token);
    if (!checked.ok()) return checked;
    return *options.token;
  }
  if (options.token_file.empty()) return std::string();
  const auto content = ReadFile("token_file", options.token_file);
  if (!content.ok()) return content.status();
  const std::string token(absl::StripAsciiWhitespace(
      absl::string_view(*content).substr(0, content->find('\n'))));
  const std::string source = absl::StrCat(
      "the first line of ", Named("token_file", options.token_file));
  const absl::Status checked = CheckToken(source, token);
  if (!checked.ok()) return checked;
  return token;
}

// Nothing is known of them, so nothing is added to them.
absl::StatusOr<Access> OwnCredentials(const ClientOptions& options) {
  const std::pair<const char*, bool> others[] = {
      {"tls", options.tls.has_value()},
      {"ca_file", !options.ca_file.empty()},
      {"certificate_file", !options.certificate_file.empty()},
      {"key_file", !options.key_file.empty()},
      {"server_name", !options.server_name.empty()},
      {"token", options.token.has_value()},
      {"token_file", !options.token_file.empty()}};
  for (const auto& [name, set] : others) {
    if (!set) continue;
    return Refused("both credentials and ", name, " are set; use one");
  }
  Access access;
  access.credentials = options.credentials;
  return access;
}

// Reads the key of the certificate that `ssl` has, if it has one.
absl::Status ReadKey(const ClientOptions& options,
                     grpc::SslCredentialsOptions* ssl) {
  const absl::Status read = ReadPem("key_file", options.key_file, "PRIVATE KEY",
                                    &ssl->pem_private_key);
  if (!read.ok() || options.key_file.empty()) return read;
  const std::string name = Named("key_file", options.key_file);
  if (!CanReadKey(ssl->pem_private_key)) {
    return Refused(name, " has a key that is damaged or needs a passphrase: ",
                   "give one without");
  }
  if (!IsPair(ssl->pem_cert_chain, ssl->pem_private_key)) {
    return Refused(name, " is not the key of ",
                   Named("certificate_file", options.certificate_file));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ReadTls(
    const ClientOptions& options) {
  grpc::SslCredentialsOptions ssl;
  absl::Status status =
      ReadCertificates("ca_file", options.ca_file, &ssl.pem_root_certs);
  if (status.ok()) {
    status = ReadCertificates("certificate_file", options.certificate_file,
                              &ssl.pem_cert_chain);
  }
  if (status.ok()) status = ReadKey(options, &ssl);
  if (!status.ok()) return status;
  return grpc::SslCredentials(ssl);
}

}  // namespace

bool UsesTls(const ClientOptions& options) {
  return options.tls.value_or(!options.ca_file.empty() ||
                              !options.certificate_file.empty());
}

bool ExposesToken(const std::string& target, const ClientOptions& options) {
  const bool token = options.token.has_value() || !options.token_file.empty();
  return token && !options.credentials && !UsesTls(options) &&
         !IsLoopback(target);
}

absl::StatusOr<Access> ReadAccess(const std::string& target,
                                  const ClientOptions& options) {
  if (options.credentials) return OwnCredentials(options);
  const absl::Status checked = CheckTls(options);
  if (!checked.ok()) return checked;
  auto token = ReadToken(options);
  if (!token.ok()) return token.status();
  if (ExposesToken(target, options)) {
    return Refused("the token would be sent unencrypted to ", target,
                   "; use TLS (tls or ca_file)");
  }
  Access access;
  access.tls = UsesTls(options);
  access.token = *std::move(token);
  if (!*access.tls) {
    access.credentials = grpc::InsecureChannelCredentials();
    return access;
  }
  auto credentials = ReadTls(options);
  if (!credentials.ok()) return credentials.status();
  access.credentials = *std::move(credentials);
  return access;
}

}  // namespace encoderd::client
