// A fixture of the tests of encoderctl embed into an .npy: a folder, a fake
// service, and runs against it.
#ifndef ENCODERD_TESTS_UNIT_CLIENT_BULK_RUNS_H_
#define ENCODERD_TESTS_UNIT_CLIENT_BULK_RUNS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/encoderctl.h"
#include "client/cpp/encoderctl/npy.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {

inline constexpr int kTexts = 2000;
inline constexpr int64_t kWindow = 8 * 16;  // --in_flight x --batch_size

inline std::string Read(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

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
