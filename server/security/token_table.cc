#include "server/security/token_table.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

constexpr size_t kMaxName = 64;
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

std::string Hash(absl::string_view token) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

bool IsHash(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isxdigit(c)) return false;
  }
  return text.size() == 2 * SHA256_DIGEST_LENGTH;
}

// Rejects a token, its hash, and the word before a token: fields in the wrong
// place.
bool IsName(absl::string_view name) {
  if (IsHash(name) || absl::EqualsIgnoreCase(name, "bearer")) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '-') {
      return false;
    }
  }
  return !name.empty() && name.size() <= kMaxName;
}

// The fields of a line, each checked separately.
struct Line {
  std::string name;
  std::string hash;
  std::optional<int64_t> max_calls;
  std::optional<int64_t> max_queue_tokens;
};

// Errors never quote the content: it may be a token.
absl::Status ReadLimit(absl::string_view field, size_t number, Line* line) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(field, absl::MaxSplits('=', 1));
  std::optional<int64_t>* const limit =
      parts.first == "max_calls"          ? &line->max_calls
      : parts.first == "max_queue_tokens" ? &line->max_queue_tokens
                                          : nullptr;
  if (limit == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "field ", number, " is neither max_calls=N nor max_queue_tokens=N"));
  }
  if (limit->has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.first, " is given twice"));
  }
  int64_t value = 0;
  if (!absl::SimpleAtoi(parts.second, &value) || value < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.first, " must be a whole number of 1 or more"));
  }
  *limit = value;
  return absl::OkStatus();
}

absl::StatusOr<Line> ReadLine(const std::vector<absl::string_view>& fields) {
  Line line;
  if (!IsName(fields[0])) {
    return absl::InvalidArgumentError(
        absl::StrCat("field 1 must be a name: 1 to ", kMaxName,
                     " letters, digits and . _ -, not a hash or scheme"));
  }
  line.name = std::string(fields[0]);
  if (fields.size() < 2 || !IsHash(fields[1])) {
    return absl::InvalidArgumentError(
        "field 2 must be the SHA-256 of a token, 64 hex digits");
  }
  line.hash = absl::HexStringToBytes(fields[1]);
  if (line.hash == Hash("")) {
    return absl::InvalidArgumentError(
        "field 2 is the SHA-256 of nothing: the token was empty when it was "
        "hashed");
  }
  for (size_t i = 2; i < fields.size(); ++i) {
    const absl::Status status = ReadLimit(fields[i], i + 1, &line);
    if (!status.ok()) return status;
  }
  return line;
}

}  // namespace

TokenHolder::TokenHolder(std::string name, std::string hash, int64_t max_calls,
                         int64_t max_queue_tokens,
                         std::shared_ptr<std::atomic<int64_t>> calls)
    : name_(std::move(name)),
      hash_(std::move(hash)),
      max_calls_(max_calls),
      caller_{std::hash<std::string>()(name_), max_queue_tokens},
      calls_(std::move(calls)) {}

absl::StatusOr<std::shared_ptr<void>> TokenHolder::OpenCall() const {
  int64_t others = calls_->load();
  do {
    if (others >= max_calls_) {
      return CallerFullError(QueueUnit::kCalls, others, 1, max_calls_,
                             "its token's max_calls");
    }
  } while (!calls_->compare_exchange_weak(others, others + 1));
  return std::shared_ptr<void>(nullptr, [calls = calls_](void*) { --*calls; });
}

absl::StatusOr<std::shared_ptr<const TokenTable>> TokenTable::Parse(
    absl::string_view text, const TokenTable* before) {
  if (absl::StartsWith(text, kByteOrderMark)) {
    return absl::InvalidArgumentError(
        "begins with a byte order mark, which editors hide: save it as UTF-8 "
        "without one");
  }
  auto table = std::make_shared<TokenTable>();
  // Calls may outlive the line of their name.
  if (before != nullptr) {
    for (const auto& [name, calls] : before->calls_) {
      if (!calls.expired()) table->calls_[name] = calls;
    }
  }
  size_t number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(whole.substr(0, whole.find('#')),
                       absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (fields.empty()) continue;
    auto line = ReadLine(fields);
    const absl::Status status =
        line.ok() ? table->Add(std::move(line->name), std::move(line->hash),
                               line->max_calls.value_or(kNoLimit),
                               line->max_queue_tokens.value_or(kNoLimit))
                  : line.status();
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  if (table->holders_.empty()) {
    return absl::InvalidArgumentError(
        "has no tokens; add a line NAME SHA256 for each");
  }
  return table;
}

absl::Status TokenTable::Add(std::string name, std::string hash,
                             int64_t max_calls, int64_t max_queue_tokens) {
  for (const auto& holder : holders_) {
    if (holder->name_ == name) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the name '", name, "' is already used; give each token its own"));
    }
    if (holder->hash_ == hash) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' has the same token as '", holder->name_,
                       "'; give each name its own"));
    }
  }
  if (holders_.size() == kMaxTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxTokens, " tokens"));
  }
  auto calls = calls_[name].lock();
  if (calls == nullptr) calls = std::make_shared<std::atomic<int64_t>>(0);
  calls_[name] = calls;
  holders_.push_back(
      std::make_unique<TokenHolder>(std::move(name), std::move(hash), max_calls,
                                    max_queue_tokens, std::move(calls)));
  return absl::OkStatus();
}

const TokenHolder* TokenTable::Find(absl::string_view token) const {
  if (token.size() > kMaxTokenBytes) return nullptr;
  const std::string hash = Hash(token);
  const TokenHolder* found = nullptr;
  for (const auto& holder : holders_) {
    if (CRYPTO_memcmp(hash.data(), holder->hash_.data(), hash.size()) == 0) {
      found = holder.get();
    }
  }
  return found;
}

const TokenHolder* TokenTable::FindInClear(absl::string_view token) const {
  if (!IsHash(token)) return nullptr;
  const std::string bytes = absl::HexStringToBytes(token);
  for (const auto& holder : holders_) {
    if (holder->hash_ == bytes) return holder.get();
  }
  return nullptr;
}

const TokenHolder* TokenTable::LeastQueueTokens() const {
  const auto least = std::min_element(
      holders_.begin(), holders_.end(), [](const auto& a, const auto& b) {
        return a->caller().max_queue_tokens < b->caller().max_queue_tokens;
      });
  return least == holders_.end() ? nullptr : least->get();
}

std::string Describe(const TokenTable& tokens) {
  return absl::StrCat(tokens.size(), tokens.size() == 1 ? " token" : " tokens");
}

}  // namespace encoderd
