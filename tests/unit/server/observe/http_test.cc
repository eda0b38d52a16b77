#include "server/observe/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

HttpSources Sources(bool ready = true) {
  return {[] { return std::string("metric 1\n"); }, [ready] { return ready; },
          nullptr};
}

TEST(HttpTest, AnswersItsThreePaths) {
  EXPECT_THAT(AnswerHttp("GET /metrics HTTP/1.1\r\nHost: x", Sources()),
              ::testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                               HasSubstr("version=0.0.4"),
                               ::testing::EndsWith("\r\n\r\nmetric 1\n")));
  EXPECT_THAT(AnswerHttp("GET /healthz HTTP/1.0", Sources(false)),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(AnswerHttp("GET /readyz?verbose HTTP/1.1", Sources()),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(AnswerHttp("GET /readyz HTTP/1.1", Sources(false)),
              StartsWith("HTTP/1.1 503"));
}

TEST(HttpTest, APageThatCannotBeMadeIsAnErrorOfItsOwn) {
  HttpSources sources = Sources();
  sources.metrics_text = []() -> std::string { throw std::bad_alloc(); };
  EXPECT_THAT(AnswerHttp("GET /metrics HTTP/1.1", sources),
              StartsWith("HTTP/1.1 503"));
}

TEST(HttpTest, AHeadHasNoBody) {
  EXPECT_THAT(AnswerHttp("HEAD /metrics HTTP/1.1", Sources()),
              ::testing::AllOf(HasSubstr("Content-Length: 9"),
                               ::testing::EndsWith("\r\n\r\n")));
}

TEST(HttpTest, RefusesEverythingElse) {
  for (const char* line : {"", " ", "GET", "GET /metrics", "GET  HTTP/1.1",
                           "GET /metrics SPDY/3", "PRI * HTTP/2.0"}) {
    EXPECT_THAT(AnswerHttp(line, Sources()), StartsWith("HTTP/1.1 400"))
        << line;
  }
  EXPECT_THAT(AnswerHttp("POST /metrics HTTP/1.1", Sources()),
              StartsWith("HTTP/1.1 405"));
  for (const char* path : {"/", "/metrics/", "/../metrics", "//metrics"}) {
    EXPECT_THAT(AnswerHttp(std::string("GET ") + path + " HTTP/1.1", Sources()),
                StartsWith("HTTP/1.1 404"))
        << path;
  }
}

class Caller {
 public:
  explicit Caller(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
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

TEST(HttpTest, ServesCallersThatAreSlowSilentOrGone) {
  const auto server = HttpServer::Start("127.0.0.1", 0, Sources());
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Caller>(port));
  Caller slow(port);
  slow.Send("GET /metr");
  { Caller gone(port); }
  Caller quick(port);
  quick.Send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(quick.ReadAll(), StartsWith("HTTP/1.1 200"));
  slow.Send("ics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(slow.ReadAll(), StartsWith("HTTP/1.1 200"));
}

// Only making room helps: nobody's time is up before the test's.
HttpBounds Patient() {
  HttpBounds bounds;
  bounds.patience = absl::Hours(1);
  return bounds;
}

TEST(HttpTest, AnyNumberOfSilentCallersKeepsNobodyFromAnAnswer) {
  const auto server = HttpServer::Start("127.0.0.1", 0, Sources(), Patient());
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> silent;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i) {
      silent.push_back(std::make_unique<Caller>(port));
      if (i % 2 == 0) silent.back()->Send("GET /metr");
    }
    Caller honest(port);
    honest.Send("GET /healthz HTTP/1.1\r\n\r\n");
    EXPECT_THAT(honest.ReadAll(), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpTest, CallersWhoNeverReadTheirAnswersMakeRoomToo) {
  HttpSources large = Sources();
  large.metrics_text = [] { return std::string(16 << 20, 'x'); };
  HttpBounds bounds = Patient();
  bounds.connections = 4;
  const auto server = HttpServer::Start("127.0.0.1", 0, large, bounds);
  ASSERT_THAT(server, IsOk());
  const int port = (*server)->port();
  std::vector<std::unique_ptr<Caller>> deaf;
  for (int i = 0; i < 10; ++i) {
    deaf.push_back(std::make_unique<Caller>(port));
    deaf.back()->Send("GET /metrics HTTP/1.1\r\n\r\n");
  }
  Caller honest(port);
  honest.Send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(honest.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpTest, WhatFollowsARequestDoesNotTakeItsAnswerAway) {
  const auto server = HttpServer::Start("127.0.0.1", 0, Sources());
  ASSERT_THAT(server, IsOk());
  Caller chatty((*server)->port());
  chatty.Send("POST /metrics HTTP/1.1\r\n\r\n" + std::string(40000, 'x'));
  EXPECT_THAT(chatty.ReadAll(),
              ::testing::AllOf(StartsWith("HTTP/1.1 405"),
                               ::testing::EndsWith("GET is supported\n")));
}

TEST(HttpTest, AnEndlessHeadIsCutShort) {
  const auto server = HttpServer::Start("127.0.0.1", 0, Sources());
  ASSERT_THAT(server, IsOk());
  Caller endless((*server)->port());
  endless.Send("GET / HTTP/1.1\r\nX: " + std::string(6000, 'x'));
  EXPECT_THAT(endless.ReadAll(), StartsWith("HTTP/1.1 431"));
  Caller next((*server)->port());
  next.Send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(next.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpTest, APortInUseIsNamed) {
  const auto first = HttpServer::Start("127.0.0.1", 0, Sources());
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(HttpServer::Start("127.0.0.1", (*first)->port(), Sources()),
              IsError(absl::StatusCode::kUnavailable, "cannot listen"));
}

}  // namespace
}  // namespace encoderd
