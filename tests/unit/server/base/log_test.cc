#include "server/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace encoderd {
namespace {

TEST(LogTest, PlainValuesStandAsTheyAre) {
  EXPECT_EQ(LogFields().Add("a", 1).Add("b", "x/y=z").text(), "a=1 b=x/y=z");
}

TEST(LogTest, OtherValuesAreQuotedAndStayOnOneLine) {
  EXPECT_EQ(LogFields().Add("a", "two words").text(), "a=\"two words\"");
  EXPECT_EQ(LogFields().Add("a", "it's 'so'").text(), "a=\"it's 'so'\"");
  EXPECT_EQ(LogFields().Add("a", "").text(), "a=\"\"");
  EXPECT_EQ(LogFields().Add("a", "1\nlevel=error \"x\"").text(),
            "a=\"1\\nlevel=error \\\"x\\\"\"");
}

TEST(LogTest, ALineHasTimeLevelAndEvent) {
  ::testing::internal::CaptureStderr();
  Log(LogLevel::kWarning, "something", LogFields().Add("n", 7));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("ts=[0-9T:.-]+Z level=warning "
                                      "event=something n=7\n"));
}

TEST(LogTest, WhatMisleadsTheReaderIsEscapedByteByByte) {
  EXPECT_EQ(LogFields().Add("a", "caf\u00e9").text(), "a=caf\u00e9");
  EXPECT_EQ(LogFields().Add("a", "\u009b2J").text(), "a=\"\\302\\2332J\"");
  EXPECT_EQ(LogFields().Add("a", "x\u202etxt").text(),
            "a=\"x\\342\\200\\256txt\"");
  EXPECT_EQ(LogFields().Add("a", "x\u2028y").text(), "a=\"x\\342\\200\\250y\"");
  EXPECT_EQ(LogFields().Add("a", "\xff\xe2\x80").text(),
            "a=\"\\377\\342\\200\"");
}

// What there is to read now.
std::string ReadAll(int fd) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  std::string text;
  char bytes[4096];
  for (;;) {
    const ssize_t size = read(fd, bytes, sizeof(bytes));
    if (size <= 0) return text;
    text.append(bytes, static_cast<size_t>(size));
  }
}

// Until it is gone, standard error of this process is what `fd` is.
class StandardErrorIs {
 public:
  explicit StandardErrorIs(int fd) : saved_(dup(STDERR_FILENO)) {
    dup2(fd, STDERR_FILENO);
  }
  ~StandardErrorIs() {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
  }
  StandardErrorIs(const StandardErrorIs&) = delete;
  StandardErrorIs& operator=(const StandardErrorIs&) = delete;

 private:
  const int saved_;
};

// Standard error of this process until it is gone: a pipe.
class ErrorPipe {
 public:
  ErrorPipe() {
    EXPECT_EQ(pipe(ends_), 0);
    redirected_.emplace(ends_[1]);
  }
  ~ErrorPipe() {
    redirected_.reset();
    close(ends_[0]);
    close(ends_[1]);
  }
  void Fill() {
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string page(kMaxLogLine, 'x');
    while (write(ends_[1], page.data(), page.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
  }
  std::string Take() { return ReadAll(ends_[0]); }

 private:
  std::optional<StandardErrorIs> redirected_;
  int ends_[2];
};

TEST(LogTest, APipeThatNobodyReadsCostsLinesAndTheyAreCounted) {
  ErrorPipe pipe;
  pipe.Fill();
  const int64_t before = LogLinesLost();
  Log(LogLevel::kInfo, "one");
  Log(LogLevel::kInfo, "two");
  EXPECT_EQ(LogLinesLost() - before, 2);
  EXPECT_THAT(pipe.Take(), ::testing::Not(::testing::HasSubstr("event=")));
  Log(LogLevel::kInfo, "three");
  EXPECT_THAT(pipe.Take(), ::testing::MatchesRegex(
                               ".*level=warning event=log_lines_lost lines=2\n"
                               ".* level=info event=three\n"));
  Log(LogLevel::kInfo, "four");
  EXPECT_THAT(pipe.Take(), ::testing::Not(::testing::HasSubstr("lost")));
  EXPECT_EQ(LogLinesLost() - before, 2);
}

TEST(LogTest, ATerminalThatNobodyReadsCostsLinesAndBlocksNobody) {
  const int reader = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(reader, 0);
  ASSERT_EQ(grantpt(reader), 0);
  ASSERT_EQ(unlockpt(reader), 0);
  const int terminal = open(ptsname(reader), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  std::optional<StandardErrorIs> redirected(terminal);
  const int64_t before = LogLinesLost();
  // More than the terminal holds, in lines that fill what is left of it.
  for (int i = 0; i < 100; ++i) {
    Log(LogLevel::kInfo, "one", LogFields().Add("a", std::string(3000, 'x')));
  }
  const int64_t lost = LogLinesLost() - before;
  ReadAll(reader);
  Log(LogLevel::kInfo, "two");
  const std::string text = ReadAll(reader);
  redirected.reset();
  for (const int fd : {terminal, reader}) close(fd);
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 100);
  // Whatever was left of a line has ended.
  EXPECT_THAT(text, ::testing::MatchesRegex(
                        "(\r\n)?ts=.* event=log_lines_lost lines=[0-9]+\r\n"
                        "ts=.* event=two\r\n"));
}

TEST(LogTest, ALongLineIsCut) {
  ErrorPipe pipe;
  Log(LogLevel::kInfo, "long", LogFields().Add("a", std::string(9999, 'x')));
  const std::string line = pipe.Take();
  EXPECT_EQ(line.size(), kMaxLogLine - 1);
  EXPECT_THAT(line, ::testing::EndsWith("x cut=true\n"));
}

TEST(LogTest, ACutEndsAWholeCharacterAndTheQuotes) {
  for (const char* part : {"\u00e9", "\u20ac", "\"", "\n", "\xff"}) {
    const std::string shown = LogFields().Add("a", part).text();
    const bool bare = shown[2] != '"';
    const std::string one = bare ? part : shown.substr(3, shown.size() - 4);
    for (int shift = 0; shift < 4; ++shift) {
      std::string value(" xxx", 1 + shift);
      for (int i = 0; i < 4096; ++i) value += part;
      ErrorPipe pipe;
      Log(LogLevel::kInfo, "long", LogFields().Add("a", value));
      const std::string line = pipe.Take();
      EXPECT_LE(line.size(), kMaxLogLine);
      EXPECT_GT(line.size(), kMaxLogLine - 8);
      EXPECT_THAT(line, ::testing::EndsWith(one + "\" cut=true\n"));
    }
  }
}

TEST(LogLimitTest, AllowsABurstAndThenARate) {
  LogLimit limit(3, absl::Seconds(2));
  const absl::Time start = absl::UnixEpoch();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Allows(start)) << i;
  EXPECT_FALSE(limit.Allows(start));
  EXPECT_FALSE(limit.Allows(start + absl::Seconds(1)));
  EXPECT_TRUE(limit.Allows(start + absl::Seconds(2)));
  EXPECT_FALSE(limit.Allows(start + absl::Seconds(3)));
  // A long silence earns a burst, no more.
  const absl::Time later = start + absl::Hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Allows(later)) << i;
  EXPECT_FALSE(limit.Allows(later));
}

TEST(LogLimitTest, CountsWhatItLeavesOutForTheNextLine) {
  CountingLogLimit limit(2, absl::Seconds(1));
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(limit.Allows(start), 0);
  EXPECT_EQ(limit.Allows(start), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Allows(start), std::nullopt);
  EXPECT_EQ(limit.Allows(start + absl::Seconds(1)), 3);
  EXPECT_EQ(limit.Allows(start + absl::Seconds(1)), std::nullopt);
  EXPECT_EQ(limit.Allows(start + absl::Seconds(2)), 1);
  EXPECT_EQ(limit.Allows(start + absl::Seconds(3)), 0);
}

TEST(LogLimitTest, CountsTheLinesOfAllThreads) {
  constexpr int kThreads = 4, kLines = 20000, kBurst = 100;
  CountingLogLimit limit(kBurst, absl::Seconds(1));
  const absl::Time start = absl::UnixEpoch();
  std::atomic<int> written{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int line = 0; line < kLines; ++line) {
        if (limit.Allows(start).has_value()) ++written;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written, kBurst);
  EXPECT_EQ(limit.Allows(start + absl::Seconds(kBurst)),
            kThreads * kLines - kBurst);
}

TEST(LogLimitTest, TellsOfLinesLeftOutWhereThereAreAny) {
  EXPECT_EQ(LogFields().Add("a", 1).AddLeftOut(0).text(), "a=1");
  EXPECT_EQ(LogFields().Add("a", 1).AddLeftOut(3).text(), "a=1 left_out=3");
}

}  // namespace
}  // namespace encoderd
