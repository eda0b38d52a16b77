#include "server/observe/http_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

std::string PathOf(absl::string_view target) {
  const std::string head = absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: x");
  const auto parsed = ParseHttpHead(head);
  return parsed.ok() ? std::string(parsed->path)
                     : std::string(parsed.status().message());
}

absl::Status WithLines(absl::string_view lines) {
  return ParseHttpHead(
             absl::StrCat("GET / HTTP/1.1\r\nHost: localhost:8401\r\n", lines))
      .status();
}

absl::Status WithHost(absl::string_view host) {
  return ParseHttpHead(absl::StrCat("GET / HTTP/1.1\r\nHost:", host)).status();
}

TEST(HttpHeadTest, EndsAtAnEmptyLine) {
  for (const char* part : {"", "\r", "\r\n", "GET", "GET / HTTP/1.1\r\nA: b",
                           "\r\nGET / HTTP/1.1\r\n\r"}) {
    EXPECT_EQ(FindHttpHead(part), std::nullopt) << part;
  }
  EXPECT_THAT(FindHttpHead("GET / HTTP/1.1\r\nA: b\r\n\r\nbody\r\n\r\n"),
              Optional(Eq("GET / HTTP/1.1\r\nA: b")));
}

TEST(HttpHeadTest, OneEmptyLineBeforeItIsIgnored) {
  EXPECT_THAT(FindHttpHead("\r\nGET / HTTP/1.1\r\n\r\n"),
              Optional(Eq("GET / HTTP/1.1")));
  EXPECT_THAT(FindHttpHead("\r\n\r\n"), Optional(Eq("")));
}

TEST(HttpHeadTest, ThePathIsWithoutSchemeAuthorityAndQuery) {
  EXPECT_EQ(PathOf("/healthz"), "/healthz");
  EXPECT_EQ(PathOf("/healthz?a=/b"), "/healthz");
  EXPECT_EQ(PathOf("http://host/healthz"), "/healthz");
  EXPECT_EQ(PathOf("HTTPS://host:8401/healthz?verbose"), "/healthz");
  EXPECT_EQ(PathOf("http://[::1]:8401"), "/");
  EXPECT_EQ(PathOf("http://host?/healthz"), "/");
  EXPECT_EQ(PathOf("http"), "http");
  EXPECT_EQ(PathOf("ftp://host/healthz"), "ftp://host/healthz");
  EXPECT_EQ(PathOf("/http://host/healthz"), "/http://host/healthz");
  EXPECT_EQ(PathOf("*"), "*");
  EXPECT_EQ(PathOf("http:///healthz"), "the target names no host");
  EXPECT_EQ(PathOf("/h\xc3\xa9"),
            "the target has a character that must be percent-encoded");
}

TEST(HttpHeadTest, ARequestLineHasThreeParts) {
  for (const char* line : {"", " ", "GET", "GET /metrics", "GET  HTTP/1.1",
                           " / HTTP/1.1", "GET  / HTTP/1.1", "GET / HTTP/1.1 ",
                           "GET /a b HTTP/1.1", "GET\t/ HTTP/1.1"}) {
    EXPECT_THAT(ParseHttpHead(absl::StrCat(line, "\r\nHost: x")).status(),
                IsError(kInvalid, "METHOD TARGET VERSION"))
        << line;
  }
  EXPECT_THAT(ParseHttpHead("G(T / HTTP/1.0").status(),
              IsError(kInvalid, "the method has"));
}

TEST(HttpHeadTest, OnlyVersionsThatItSpeaks) {
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.0"), IsOk());
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.2\r\nHost: a"), IsOk());
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.2").status(),
              IsError(kInvalid, "needs a Host header"));
  for (const char* version :
       {"SPDY/3", "HTTP/1.", "HTTP/1.11", "HTTP/0.9", "HTTP/1.x", "http/1.1",
        "HTTP/10.0", "HTTP/2", "HTTP/2x0", "HTTP/x.0"}) {
    EXPECT_THAT(ParseHttpHead(absl::StrCat("GET / ", version)).status(),
                IsError(kInvalid, "only HTTP/1.0 and HTTP/1.1"))
        << version;
  }
  for (const char* version : {"HTTP/2.0", "HTTP/9.9"}) {
    EXPECT_THAT(
        ParseHttpHead(absl::StrCat("GET / ", version)).status(),
        IsError(absl::StatusCode::kUnimplemented, "only HTTP/1.0 and HTTP/1.1"))
        << version;
  }
}

TEST(HttpHeadTest, Http11NamesOneHost) {
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.1").status(),
              IsError(kInvalid, "needs a Host"));
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.1\r\nHosts: x").status(),
              IsError(kInvalid, "needs a Host"));
  EXPECT_THAT(WithLines("hOST: localhost:8401"), IsError(kInvalid, "two Host"));
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.0\r\nHost: a\r\nHost: b").status(),
              IsError(kInvalid, "two Host"));
  for (const char* host : {"", " ", "x", "\tx ", " a_b.example:80",
                           "[fe80::1%25eth0]:1", " 10.0.0.1", " %41"}) {
    EXPECT_THAT(WithHost(host), IsOk()) << host;
  }
  for (const char* host :
       {"a b", "a/b", "http://a", "u@a", "a?b", "\xc3\xa9"}) {
    EXPECT_THAT(WithHost(host), IsError(kInvalid, "Host is neither")) << host;
  }
}

TEST(HttpHeadTest, AHeaderLineIsANameAndAValue) {
  EXPECT_THAT(WithLines("A:\r\nx-b_1:\t c: d\xff \r\nA: again"), IsOk());
  EXPECT_THAT(WithLines("A: b\r\nno colon"),
              IsError(kInvalid, "header line 3 has no colon"));
  EXPECT_THAT(WithLines(""), IsError(kInvalid, "header line 2 has no colon"));
  for (const char* line : {"A : b", ": b", "A b: c", "(: b", "\xc3: b"}) {
    EXPECT_THAT(WithLines(line),
                IsError(kInvalid, "header line 2 has an invalid name"))
        << line;
  }
  for (const char* line : {" folded", "\tfolded: x"}) {
    EXPECT_THAT(WithLines(line),
                IsError(kInvalid, "header line 2 begins with a blank"));
  }
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.1\r\n Host: x").status(),
              IsError(kInvalid, "header line 1 begins with a blank"));
}

TEST(HttpHeadTest, NoLineHasControlCharacters) {
  for (const absl::string_view line :
       {absl::string_view("A: b\nHost: x"), absl::string_view("A: b\rc"),
        absl::string_view("A: b\0c", 6), absl::string_view("A: \x7f")}) {
    EXPECT_THAT(WithLines(line), IsError(kInvalid, "a control character"))
        << line;
  }
  EXPECT_THAT(ParseHttpHead("GET / HTTP/1.0\nHost: x").status(),
              IsError(kInvalid, "a control character"));
}

TEST(HttpHeadTest, AContentLengthIsOneNumber) {
  EXPECT_THAT(WithLines("Content-Length: 0"), IsOk());
  EXPECT_THAT(WithLines("content-length:17 \r\nContent-Length:\t17"), IsOk());
  EXPECT_THAT(WithLines("Content-Length: 999999999999999999"), IsOk());
  for (const char* value : {"", "-1", "+1", "0x1", "1 2", "1, 1", "1.0", "one",
                            "1000000000000000000"}) {
    EXPECT_THAT(WithLines(absl::StrCat("Content-Length: ", value)),
                IsError(kInvalid, "Content-Length is not a number"))
        << value;
  }
  EXPECT_THAT(WithLines("Content-Length: 1\r\nContent-Length: 2"),
              IsError(kInvalid, "two different Content-Length"));
}

}  // namespace
}  // namespace encoderd
