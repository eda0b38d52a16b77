#include "server/security/token_table.h"

#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
// SHA-256 of "alpha", "beta" and "", as sha256sum gives them.
constexpr char kAlpha[] =
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr char kBeta[] =
    "F44E64E75F3948E9F73F8DFA94721C4CE8CBB4F265C4790C702B2D41CFBF2753";
constexpr char kNothing[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::shared_ptr<const TokenTable> Parsed(const std::string& text,
                                         const TokenTable* before = nullptr) {
  auto table = TokenTable::Parse(text, before);
  EXPECT_THAT(table, IsOk());
  return table.ok() ? *table : nullptr;
}

TEST(TokenTableTest, FindsWhoseTokenItIs) {
  const auto table = Parsed(
      absl::StrCat("# two of them\n\nsearch ", kAlpha, "\r\n\tcrawl.er-2_x  ",
                   kBeta, " max_calls=2 max_queue_tokens=70 # x"));
  ASSERT_EQ(table->size(), 2u);
  const TokenHolder* const search = table->Find("alpha");
  const TokenHolder* const crawler = table->Find("beta");
  ASSERT_NE(search, nullptr);
  ASSERT_NE(crawler, nullptr);
  EXPECT_EQ(search->name(), "search");
  EXPECT_EQ(search->caller().max_queue_tokens,
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(crawler->name(), "crawl.er-2_x");
  EXPECT_EQ(crawler->caller().max_queue_tokens, 70);
  EXPECT_NE(search->caller().id, crawler->caller().id);
  for (const std::string& other :
       {std::string(), std::string("alph"), std::string("alpha "),
        std::string(kAlpha), std::string("alpha\0", 6),
        std::string(kMaxTokenBytes + 1, 'a')}) {
    EXPECT_EQ(table->Find(other), nullptr) << other.size();
  }
}

TEST(TokenTableTest, CallsAreCountedUntilTheyAreLetGo) {
  const auto table = Parsed(absl::StrCat("a ", kAlpha, " max_calls=2"));
  const TokenHolder* const holder = table->Find("alpha");
  auto first = holder->OpenCall();
  auto second = holder->OpenCall();
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  const auto third = holder->OpenCall();
  ASSERT_THAT(third.status(),
              IsError(absl::StatusCode::kResourceExhausted,
                      "this caller has 2 calls and this request adds "
                      "1; its token's max_calls is 2"));
  const auto detail = GetErrorDetail(third.status());
  EXPECT_EQ(detail->reason, "QUEUE_FULL");
  EXPECT_EQ(detail->metadata.at("queued_calls"), "2");
  first = absl::UnknownError("let go");
  EXPECT_THAT(holder->OpenCall(), IsOk());
  EXPECT_THAT(holder->OpenCall(), IsOk());  // the one above was let go at once
}

TEST(TokenTableTest, OpenCallsCountOnWhenTheFileIsReadAgain) {
  auto before = Parsed(absl::StrCat("a ", kAlpha, " max_calls=2"));
  auto open = before->Find("alpha")->OpenCall();
  // The same name with another token, as in a rotation.
  const auto after = Parsed(
      absl::StrCat("a ", kBeta, " max_calls=1\nb ", kAlpha), before.get());
  before.reset();
  const TokenHolder* const holder = after->Find("beta");
  EXPECT_FALSE(holder->OpenCall().ok());
  open = absl::UnknownError("let go");
  EXPECT_THAT(holder->OpenCall(), IsOk());
}

TEST(TokenTableTest, WhatIsWrongIsNamedWithItsLine) {
  std::string many;
  for (int i = 0; i <= static_cast<int>(kMaxTokens); ++i) {
    absl::StrAppend(&many, "n", i, " ", absl::Hex(i, absl::kZeroPad16),
                    std::string(48, '0'), "\n");
  }
  const std::string good = absl::StrCat("a ", kAlpha, "\n");
  const std::pair<std::string, std::string> kCases[] = {
      {"", "has no tokens"},
      {"# nothing\n", "has no tokens"},
      {good + "b/c " + kBeta,
       "line 2: field 1 must be a name: 1 to 64 letters"},
      {std::string(65, 'n') + " " + kBeta, "line 1: field 1 must be a name"},
      {good + "b", "line 2: field 2 must be the SHA-256 of a token"},
      {"b secret", "line 1: field 2 must be the SHA-256"},
      {absl::StrCat("b ", kBeta, "0"), "64 hex digits"},
      {absl::StrCat("b g", std::string(63, '0')), "64 hex digits"},
      {good + "a " + kBeta, "line 2: the name 'a' is already used"},
      {good + "b " + kAlpha, "line 2: 'b' has the same token as 'a'"},
      {good + "b " + kBeta + " max_call=1",
       "line 2: field 3 is neither max_calls=N"},
      {good + "b " + kBeta + " max_calls=0",
       "max_calls must be a whole number of 1"},
      {good + "b " + kBeta + " max_calls=", "max_calls must be a whole number"},
      {good + "b " + kBeta + " max_queue_tokens=1e3", "must be a whole number"},
      {good + "b " + kBeta + " max_calls=1 max_calls=2",
       "line 2: max_calls is given twice"},
      {good + "b " + kNothing, "line 2: field 2 is the SHA-256 of nothing"},
      {std::string(kAlpha) + " " + kBeta, "line 1: field 1 must be a name"},
      {std::string("Bearer ") + kBeta, "line 1: field 1 must be a name"},
      {"\xEF\xBB\xBF" + good, "begins with a byte order mark"},
      {many, "line 1025: more than 1024 tokens"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(TokenTable::Parse(text, nullptr).status(),
                IsError(kInvalid, message));
  }
}

TEST(TokenTableTest, FindsTheLowestLimitOfQueueTokens) {
  const auto table =
      Parsed(absl::StrCat("a ", kAlpha, "\nb ", kBeta, " max_queue_tokens=7"));
  EXPECT_EQ(table->LeastQueueTokens()->name(), "b");
}

TEST(TokenTableTest, AnErrorNeverShowsWhatMayBeAToken) {
  // As `openssl rand -hex 32` gives it: it looks like a hash, too.
  const std::string token(64, 'c');
  for (const std::string& text :
       {token, absl::StrCat("search ", kAlpha, " ", token),
        "search my-" + token, token + " " + kAlpha, std::string("my-token"),
        "a=" + token}) {
    const auto error = TokenTable::Parse(text, nullptr).status();
    EXPECT_FALSE(error.ok()) << text;
    EXPECT_EQ(error.message().find("token-"), std::string::npos);
    EXPECT_EQ(error.message().find(token), std::string::npos) << error;
    EXPECT_EQ(error.message().find("my-"), std::string::npos) << error;
  }
}

// As `openssl rand -base64 32` gives it, which the page on tokens recommends.
TEST(TokenTableTest, ABase64TokenInThePlaceOfItsHashIsRefusedByItsLine) {
  EXPECT_THAT(
      TokenTable::Parse(absl::StrCat("search ", kAlpha,
                                     "\nx u1fUCEa0W9T/fT+kZsEF1fXQDZ8GSyPG+"
                                     "wKZsKVPfDk=\n"),
                        nullptr)
          .status(),
      IsError(kInvalid,
              "line 2: field 2 must be the SHA-256 of a token, 64 hex digits"));
}

TEST(TokenTableTest, ATokenInThePlaceOfItsHashIsFoundOut) {
  const auto table = Parsed(absl::StrCat("search ", kAlpha));
  EXPECT_EQ(table->Find(kAlpha), nullptr);
  ASSERT_NE(table->FindInClear(kAlpha), nullptr);
  EXPECT_EQ(table->FindInClear(kAlpha)->name(), "search");
  EXPECT_EQ(table->FindInClear(kBeta), nullptr);
  EXPECT_EQ(table->FindInClear("alpha"), nullptr);
}

TEST(TokenTableTest, ANameThatComesBackStillHasItsOpenCalls) {
  const auto first = Parsed(absl::StrCat("a ", kAlpha, " max_calls=1"));
  auto open = first->Find("alpha")->OpenCall();
  ASSERT_THAT(open, IsOk());
  const auto without = Parsed(absl::StrCat("b ", kBeta), first.get());
  const auto again =
      Parsed(absl::StrCat("a ", kAlpha, " max_calls=1"), without.get());
  EXPECT_FALSE(again->Find("alpha")->OpenCall().ok());
  open = absl::UnknownError("let go");
  EXPECT_THAT(again->Find("alpha")->OpenCall(), IsOk());
}

}  // namespace
}  // namespace encoderd
