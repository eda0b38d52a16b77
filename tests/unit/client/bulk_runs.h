// A fixture of the tests of encoderctl embed into an .npy: a folder, a fake
// service, and runs against it.
#ifndef ENCODERD_TESTS_UNIT_CLIENT_BULK_RUNS_H_
#define ENCODERD_TESTS_UNIT_CLIENT_BULK_RUNS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/encoderctl.h"
#include "client/cpp/encoderctl/npy.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/read_all.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {

inline constexpr int kTexts = 2000;
inline constexpr int64_t kWindow = 8 * 16;  // --in_flight x --batch_size

inline std::string Read(const std::string& path) { return ReadAll(path); }

// A run of `embed` into `output` that reads texts from a pipe.
class PipedRun {
 public:
  PipedRun(const std::string& target, const std::string& output) {
    EXPECT_EQ(pipe(ends_), 0);
    run_ = std::thread([this, target, output] {
      std::istringstream unused;
      std::ostringstream out;
      Environment environment{unused, out, err_};
      environment.in_descriptor = ends_[0];
      code_ = RunEncoderctl({"embed", "--target", target, "--output", output},
                            environment);
    });
  }
  ~PipedRun() {
    if (run_.joinable()) End();
  }

  void Give(const std::string& lines) {
    EXPECT_EQ(write(ends_[1], lines.data(), lines.size()),
              static_cast<ssize_t>(lines.size()));
  }
  // Ends the input. Returns the exit code.
  int End() {
    close(ends_[1]);
    run_.join();
    close(ends_[0]);
    return code_;
  }
  // Once it has ended.
  std::string err() const { return err_.str(); }

 private:
  int ends_[2] = {-1, -1};
  std::ostringstream err_;
  int code_ = -1;
  std::thread run_;
};

class BulkRuns : public ::testing::Test {
 protected:
  BulkRuns() {
    std::string lines;
    for (int i = 0; i < kTexts; ++i) {
      absl::StrAppend(&lines, "{\"text\": \"text ", i, "\"}\n");
    }
    Write("in.jsonl", lines);
  }

  std::string Path(const std::string& name) const { return folder_.Path(name); }
  void Write(const std::string& name, const std::string& content) {
    folder_.Write(name, content);
  }
  int Run(const std::string& output, std::vector<std::string> flags = {},
          const std::string& input = "in.jsonl") {
    std::istringstream in;
    std::ostringstream out, err;
    Environment environment{in, out, err};
    std::vector<std::string> all = {
        "embed",        absl::StrCat("--target=", service_.target()),
        "--batch_size", "16",
        "--in_flight",  "8",
        "--input",      Path(input),
        "--output",     Path(output)};
    all.insert(all.end(), flags.begin(), flags.end());
    const int code = RunEncoderctl(all, environment);
    err_ = err.str();
    return code;
  }
  // A run into out.npy that fails in its middle. Nothing of it goes on in the
  // service afterwards: what stream_texts() gains then is the next run's.
  void FailARun(std::vector<std::string> flags = {}) {
    service_.FailAfterStreamTexts(service_.stream_texts() + 700);
    EXPECT_EQ(Run("out.npy", std::move(flags)), kExitFailed);
    service_.AwaitEndOfStreams();
    service_.FailAfterStreamTexts(-1);
  }

  // A run that the server refuses before any row.
  void RefuseARun(const std::string& output, std::vector<std::string> flags) {
    service_.FailNext(1, encoderd::testing::FakeError(
                             grpc::StatusCode::INVALID_ARGUMENT,
                             "no such option", "INVALID_OPTION", {}));
    EXPECT_EQ(Run(output, std::move(flags)), kExitFailed);
    EXPECT_THAT(err_, ::testing::HasSubstr("INVALID_OPTION"));
    service_.AwaitEndOfStreams();
  }

  encoderd::testing::FakeEncoderService service_;
  const TempFolder folder_;
  std::string err_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_TESTS_UNIT_CLIENT_BULK_RUNS_H_
