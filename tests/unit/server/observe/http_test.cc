#include "server/observe/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/support/loopback.h"
#include "tests/support/patience.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

const HostPort kAnyPort = {"127.0.0.1", 0};

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Answer(absl::string_view request_line, const HttpSources& sources) {
  return AnswerHttp(absl::StrCat(request_line, "\r\nHost: x"), sources);
}

HttpSources Sources(bool ready = true) {
  return {[] { return std::string("metric 1\n"); }, [ready] { return ready; },
          nullptr};
}

TEST(HttpTest, AnswersItsThreePaths) {
  EXPECT_THAT(
      Answer("GET /metrics HTTP/1.1", Sources()),
      AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("version=0.0.4"),
            EndsWith("\r\n\r\nmetric 1\n")));
  EXPECT_THAT(AnswerHttp("GET /healthz HTTP/1.0", Sources(false)),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Answer("GET /readyz?verbose HTTP/1.1", Sources()),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Answer("GET /readyz HTTP/1.1", Sources(false)),
              StartsWith("HTTP/1.1 503"));
}

TEST(HttpTest, APageThatCannotBeMadeHasASeparateError) {
  HttpSources sources = Sources();
  sources.metrics_text = []() -> std::string { throw std::bad_alloc(); };
  EXPECT_THAT(Answer("GET /metrics HTTP/1.1", sources),
              StartsWith("HTTP/1.1 503"));
}

TEST(HttpTest, TheAnswerToHeadIsThatToGetWithoutABody) {
  for (const char* target : {"/metrics", "/readyz", "/other", "/a b"}) {
    const std::string rest = absl::StrCat(" ", target, " HTTP/1.1");
    const std::string full = Answer(absl::StrCat("GET", rest), Sources());
    EXPECT_EQ(Answer(absl::StrCat("HEAD", rest), Sources()),
              full.substr(0, full.find("\r\n\r\n") + 4));
  }
}

TEST(HttpTest, AbsoluteTargetsAreAnsweredLikePaths) {
  EXPECT_THAT(Answer("GET http://host:1/healthz?a HTTP/1.1", Sources()),
              EndsWith("alive\n"));
  EXPECT_THAT(Answer("GET https://host HTTP/1.1", Sources()),
              StartsWith("HTTP/1.1 404"));
}

TEST(HttpTest, RefusesEverythingElse) {
  EXPECT_THAT(Answer("GET /metrics", Sources()),
              AllOf(StartsWith("HTTP/1.1 400 Bad Request\r\n"),
                    EndsWith("VERSION, one space apart\n")));
  EXPECT_THAT(AnswerHttp("GET /metrics HTTP/1.1", Sources()),
              AllOf(StartsWith("HTTP/1.1 400 Bad Request\r\n"),
                    EndsWith("HTTP/1.1 needs a Host header\n")));
  EXPECT_THAT(AnswerHttp("PRI * HTTP/2.0", Sources()),
              StartsWith("HTTP/1.1 505 HTTP Version Not Supported\r\n"));
  EXPECT_THAT(Answer("POST /metrics HTTP/1.1", Sources()),
              AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"),
                    HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  for (const char* path : {"/", "/metrics/", "/../metrics", "//metrics"}) {
    EXPECT_THAT(Answer(absl::StrCat("GET ", path, " HTTP/1.1"), Sources()),
                AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"),
                      Not(HasSubstr("Allow:"))))
        << path;
  }
}

TEST(HttpTest, KnowsWhoAsksForMetrics) {
  EXPECT_TRUE(AsksForMetricsHttp("GET http://x/metrics?a HTTP/1.0"));
  EXPECT_TRUE(AsksForMetricsHttp("HEAD /metrics HTTP/1.0"));
  EXPECT_FALSE(AsksForMetricsHttp("POST /metrics HTTP/1.0"));
  EXPECT_FALSE(AsksForMetricsHttp("GET /metrics HTTP/1.1"));  // no host
  EXPECT_FALSE(AsksForMetricsHttp("GET /readyz HTTP/1.0"));
}

class Caller {
 public:
  explicit Caller(int port) : fd_(NewTcpSocket()) {
    const timeval patience = {20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_TRUE(ConnectLoopback(fd_, port));
  }
  ~Caller() { close(fd_); }
  Caller(const Caller&) = delete;
  void Send(const std::string& bytes) {
    send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  std::string ReadAll() {
    std::string all;
    char buffer[1024];
    ssize_t size = 0;
    while ((size = recv(fd_, buffer, sizeof(buffer), 0)) > 0) {
      all.append(buffer, static_cast<size_t>(size));
    }
    return all;
  }

 private:
  const int fd_;
};

// Nobody's time is up before the test's.
HttpBounds Patient() {
  HttpBounds bounds;
  bounds.patience = absl::Hours(1);
  return bounds;
}

TEST(HttpTest, ServesCallersThatAreSlowSilentOrGone) {
  const auto server = HttpServer::Start(kAnyPort, Sources(), Patient());
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Caller>(port));
  Caller slow(port);
  slow.Send("GET /metr");
  { Caller gone(port); }
  Caller quick(port);
  quick.Send("GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_THAT(quick.ReadAll(), StartsWith("HTTP/1.1 200"));
  slow.Send("ics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(slow.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpTest, AnyNumberOfSilentCallersKeepsNobodyFromAnAnswer) {
  const auto server = HttpServer::Start(kAnyPort, Sources(), Patient());
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> silent;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i) {
      silent.push_back(std::make_unique<Caller>(port));
      if (i % 2 == 0) silent.back()->Send("GET /metr");
    }
    Caller honest(port);
    honest.Send("GET /healthz HTTP/1.0\r\n\r\n");
    EXPECT_THAT(honest.ReadAll(), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpTest, CallersWhoNeverReadTheirAnswersMakeRoomToo) {
  HttpSources large = Sources();
  large.metrics_text = [] { return std::string(16 << 20, 'x'); };
  HttpBounds bounds = Patient();
  bounds.connections = 4;
  const auto server = HttpServer::Start(kAnyPort, large, bounds);
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> deaf;
  for (int i = 0; i < 10; ++i) {
    deaf.push_back(std::make_unique<Caller>(port));
    deaf.back()->Send("GET /metrics HTTP/1.0\r\n\r\n");
  }
  Caller honest(port);
  honest.Send("GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_THAT(honest.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpTest, CallersWhoNeverReadDoNotCostAPageEach) {
  HttpSources slow = Sources();
  absl::Notification first, go;
  std::atomic<int> pages{0};
  slow.metrics_text = [&] {
    if (++pages == 1) {
      first.Notify();
      go.WaitForNotification();
    }
    return std::string(16 << 20, 'x');
  };
  HttpBounds bounds = Patient();
  bounds.connections = 4;
  const auto server = HttpServer::Start(kAnyPort, slow, bounds);
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> deaf;
  for (int i = 0; i < 9; ++i) {
    deaf.push_back(std::make_unique<Caller>(port));
    deaf.back()->Send("GET /metrics HTTP/1.0\r\n\r\n");
    if (i == 0) first.WaitForNotification();
  }
  Caller honest(port);
  honest.Send("GET /healthz HTTP/1.0\r\n\r\n");
  go.Notify();
  EXPECT_THAT(honest.ReadAll(), StartsWith("HTTP/1.1 200"));
  EXPECT_LE(pages, 3);  // four are taken in at once
}

TEST(HttpTest, WhatFollowsARequestDoesNotTakeItsAnswerAway) {
  const auto server = HttpServer::Start(kAnyPort, Sources());
  ASSERT_THAT(server, IsOk());
  Caller chatty((*server)->port());
  chatty.Send("POST /metrics HTTP/1.0\r\n\r\n" + std::string(40000, 'x'));
  EXPECT_THAT(chatty.ReadAll(), AllOf(StartsWith("HTTP/1.1 405"),
                                      EndsWith("HEAD are supported\n")));
}

// A request whose head has this many bytes, its empty line included.
std::string RequestOf(size_t bytes) {
  std::string request = "GET /healthz HTTP/1.0\r\nA: ";
  return request.append(bytes - request.size() - 4, 'a').append("\r\n\r\n");
}

TEST(HttpTest, ALongHeadIsRefusedHoweverItEnds) {
  const auto server = HttpServer::Start(kAnyPort, Sources());
  ASSERT_THAT(server, IsOk());
  for (const auto& [request, answer] :
       {std::pair("GET / HTTP/1.1\r\nX: " + std::string(6000, 'x'), "431"),
        std::pair(RequestOf(4097), "431"), std::pair(RequestOf(5000), "431"),
        std::pair(RequestOf(4096), "200"),
        std::pair(RequestOf(4096) + std::string(9000, 'x'), "200")}) {
    Caller caller((*server)->port());
    caller.Send(request);
    EXPECT_THAT(caller.ReadAll(), StartsWith(absl::StrCat("HTTP/1.1 ", answer)))
        << request.size();
  }
}

TEST(HttpTest, AnEmptyLineMayPrecedeARequest) {
  const auto server = HttpServer::Start(kAnyPort, Sources());
  ASSERT_THAT(server, IsOk());
  Caller one((*server)->port());
  one.Send("\r\nGET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_THAT(one.ReadAll(), StartsWith("HTTP/1.1 200"));
  Caller two((*server)->port());
  two.Send("\r\n\r\n");
  EXPECT_THAT(two.ReadAll(), StartsWith("HTTP/1.1 400"));
}

// Builds the page only when it is told to; the page says which one it is.
class PageGate {
 public:
  HttpSources Sources() {
    return {[this] { return Build(); }, [] { return true; }, nullptr};
  }
  // False: did not come to build a page of this number, which is 1 or more.
  bool WaitForPage(int number) {
    return Eventually([&] { return building_ >= number; });
  }
  bool HasBegunPage(int number) const { return building_ >= number; }
  void Release() { ++released_; }

 private:
  std::string Build() {
    const int number = ++building_;
    EXPECT_TRUE(Eventually([&] { return released_ >= number; }));
    return absl::StrCat("page ", number, "\n");
  }
  std::atomic<int> building_{0};
  std::atomic<int> released_{0};
};

TEST(HttpTest, ScrapesThatWaitGetOnePageAfterTheProbes) {
  PageGate gate;
  const auto server = HttpServer::Start(kAnyPort, gate.Sources(), Patient());
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  Caller accepted(port);
  accepted.Send("GET /met");
  Caller first(port);
  first.Send("GET /metrics HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(gate.WaitForPage(1));
  // All of these come while the page is built.
  accepted.Send("rics HTTP/1.0\r\n\r\n");
  Caller scrape(port);
  scrape.Send("GET /metrics HTTP/1.0\r\n\r\n");
  Caller head(port);
  head.Send("HEAD /metrics HTTP/1.0\r\n\r\n");
  Caller probe(port);
  probe.Send("GET /readyz HTTP/1.0\r\n\r\n");
  gate.Release();
  EXPECT_THAT(first.ReadAll(), EndsWith("page 1\n"));
  // Before the next page is ready.
  EXPECT_THAT(probe.ReadAll(), EndsWith("ready\n"));
  ASSERT_TRUE(gate.WaitForPage(2));
  gate.Release();
  EXPECT_THAT(accepted.ReadAll(), EndsWith("page 2\n"));
  EXPECT_THAT(scrape.ReadAll(), EndsWith("page 2\n"));
  EXPECT_THAT(head.ReadAll(), HasSubstr("Content-Length: 7\r\n"));
  // One that comes later gets a new page.
  gate.Release();
  Caller later(port);
  later.Send("GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(later.ReadAll(), EndsWith("page 3\n"));
}

TEST(HttpTest, MoreScrapesThanConnectionsAreAllAnswered) {
  PageGate gate;
  HttpBounds bounds = Patient();
  bounds.connections = 2;
  const auto server = HttpServer::Start(kAnyPort, gate.Sources(), bounds);
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> scrapes;
  for (int i = 0; i < 12; ++i) {
    scrapes.push_back(std::make_unique<Caller>(port));
    scrapes.back()->Send("GET /metrics HTTP/1.0\r\n\r\n");
    // All but the first wait while its page is built.
    if (i > 0) continue;
    ASSERT_TRUE(gate.WaitForPage(1));
  }
  for (int i = 0; i < 12; ++i) gate.Release();
  for (const auto& scrape : scrapes) {
    EXPECT_THAT(scrape->ReadAll(), HasSubstr("\r\n\r\npage "));
  }
}

TEST(HttpTest, AFloodOfScrapesSharesAPage) {
  PageGate gate;
  HttpBounds bounds = Patient();
  bounds.connections = 4;
  bounds.max_page_age = absl::Hours(1);
  const auto server = HttpServer::Start(kAnyPort, gate.Sources(), bounds);
  ASSERT_THAT(server, IsOk());
  std::vector<std::unique_ptr<Caller>> scrapes;
  for (int i = 0; i < 60; ++i) {
    scrapes.push_back(std::make_unique<Caller>((*server)->port()));
    scrapes.back()->Send("GET /metrics HTTP/1.0\r\n\r\n");
    // All but the first wait while its page is built.
    if (i == 0) {
      ASSERT_TRUE(gate.WaitForPage(1));
    }
  }
  for (int i = 0; i < 60; ++i) gate.Release();
  for (const auto& scrape : scrapes) {
    EXPECT_THAT(scrape->ReadAll(), HasSubstr("\r\n\r\npage "));
  }
  // That of the first, of the flood, and of those who end it.
  EXPECT_FALSE(gate.HasBegunPage(4));
  // Nobody else gets an old page.
  Caller later((*server)->port());
  later.Send("GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(later.ReadAll(),
              AnyOf(EndsWith("page 3\n"), EndsWith("page 4\n")));
}

TEST(HttpTest, APortInUseIsNamed) {
  const auto first = HttpServer::Start(kAnyPort, Sources());
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(HttpServer::Start({"127.0.0.1", (*first)->port()}, Sources()),
              IsError(absl::StatusCode::kUnavailable, "cannot listen"));
}

}  // namespace
}  // namespace encoderd
