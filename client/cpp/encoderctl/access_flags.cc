#include "client/cpp/encoderctl/access_flags.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/access.h"

namespace encoderd::ctl {
namespace {

// "" where it is not set: an empty variable is none.
std::string Variable(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

absl::StatusOr<std::optional<bool>> ReadTls(const Variables& variables) {
  static const auto& words = *new std::map<std::string, std::optional<bool>>{
      {"", std::nullopt}, {"1", true},      {"true", true}, {"yes", true},
      {"0", false},       {"false", false}, {"no", false}};
  const std::string text = Variable(variables, "ENCODERD_TLS");
  const auto found = words.find(absl::AsciiStrToLower(text));
  if (found != words.end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat("ENCODERD_TLS is \"", text,
                   "\"; it takes 1 or 0, true or false, yes or no"));
}

// At most one of the two variables of the token counts.
absl::Status FillToken(const Variables& variables,
                       client::ClientOptions* options) {
  const std::string token = Variable(variables, "ENCODERD_TOKEN");
  options->token_file = Variable(variables, "ENCODERD_TOKEN_FILE");
  if (!token.empty() && !options->token_file.empty()) {
    return absl::InvalidArgumentError(
        "both ENCODERD_TOKEN and ENCODERD_TOKEN_FILE are set; use one");
  }
  if (!token.empty()) options->token = token;
  return absl::OkStatus();
}

constexpr absl::string_view kFlagNames[] = {
    "tls",      "ca_file",     "certificate_file",
    "key_file", "server_name", "token_file"};

bool IsFlag(absl::string_view word) {
  return std::find(std::begin(kFlagNames), std::end(kFlagNames), word) !=
         std::end(kFlagNames);
}

// Whether a word next to `c` is a part of something longer, such as a path, an
// address or a flag.
bool Joins(char c) {
  return absl::ascii_isalnum(c) || absl::StrContains("_-./:\"", c);
}

}  // namespace

std::string InFlags(absl::string_view words) {
  const size_t own = std::min(words.find("gRPC says: "), words.size());
  const auto in_word = [](char c) {
    return absl::ascii_isalpha(c) || c == '_';
  };
  std::string said;
  size_t at = 0;
  while (at < own) {
    size_t end = at;
    while (end < own && in_word(words[end])) ++end;
    const bool joined =
        (at > 0 && Joins(words[at - 1])) ||
        (end + 1 < own && Joins(words[end]) && words[end + 1] != ' ');
    if (!joined && IsFlag(words.substr(at, end - at))) said += "--";
    end = std::max(end, at + 1);
    absl::StrAppend(&said, words.substr(at, end - at));
    at = end;
  }
  return absl::StrCat(said, words.substr(own));
}

void AccessFlags::AddTo(Flags* flags) {
  flags->AddSwitch(
      "tls",
      "encrypt (default: the environment variable ENCODERD_TLS; on "
      "if --ca_file or --certificate_file is given)",
      &tls);
  flags->AddString(
      "ca_file", "FILE",
      "PEM file of the CAs to trust (default ENCODERD_CA_FILE, else "
      "the system's)",
      &ca_file);
  flags->AddString("certificate_file", "FILE",
                   "PEM file with your certificate, for a server that asks for "
                   "one (default ENCODERD_CERTIFICATE_FILE)",
                   &certificate_file);
  flags->AddString("key_file", "FILE",
                   "PEM file with its key (default ENCODERD_KEY_FILE)",
                   &key_file);
  flags->AddString(
      "server_name", "NAME",
      "name to expect in the server's certificate, if not the host "
      "of --target (default ENCODERD_SERVER_NAME)",
      &server_name);
  flags->AddString("token_file", "FILE",
                   "file whose first line is the bearer token of every call "
                   "(default ENCODERD_TOKEN_FILE, or the token itself in "
                   "ENCODERD_TOKEN); there is no flag for the token itself, "
                   "since everyone on this machine can see command lines",
                   &token_file);
}

absl::Status AccessFlags::Fill(const Variables& variables,
                               client::ClientOptions* options) const {
  options->tls = tls;
  options->ca_file = ca_file.value_or("");
  options->certificate_file = certificate_file.value_or("");
  options->key_file = key_file.value_or("");
  if (!tls.has_value() && !client::UsesTls(*options)) {
    const auto read = ReadTls(variables);
    if (!read.ok()) return read.status();
    options->tls = *read;
  }
  // Files of the environment do not count where encryption is off.
  if (options->tls.value_or(true)) {
    if (!ca_file) options->ca_file = Variable(variables, "ENCODERD_CA_FILE");
    if (!certificate_file) {
      options->certificate_file =
          Variable(variables, "ENCODERD_CERTIFICATE_FILE");
    }
    if (!key_file) options->key_file = Variable(variables, "ENCODERD_KEY_FILE");
  }
  options->server_name = server_name.value_or(
      client::UsesTls(*options) ? Variable(variables, "ENCODERD_SERVER_NAME")
                                : "");
  if (!token_file) return FillToken(variables, options);
  options->token_file = *token_file;
  return absl::OkStatus();
}

}  // namespace encoderd::ctl
