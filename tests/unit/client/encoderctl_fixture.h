// encoderctl as a whole, in this process, against the fake service.
#ifndef ENCODERD_TESTS_UNIT_CLIENT_ENCODERCTL_FIXTURE_H_
#define ENCODERD_TESTS_UNIT_CLIENT_ENCODERCTL_FIXTURE_H_

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cpp/encoderctl/encoderctl.h"
#include "client/cpp/encoderctl/npy.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/read_all.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {

class EncoderctlTest : public ::testing::Test {
 protected:
  // Runs a command against the fake service; what it wrote is in out_, err_.
  int Run(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.push_back(absl::StrCat("--target=", service_.target()));
    return RunBare(arguments, input);
  }
  int RunBare(const std::vector<std::string>& arguments,
              const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream err;
    Environment environment{in, out, err};
    const int code = RunEncoderctl(arguments, environment);
    out_ = out.str();
    err_ = err.str();
    return code;
  }
  // A file of this test's own with `content`.
  std::string File(const std::string& name, const std::string& content) {
    folder_.Write(name, content);
    return folder_.Path(name);
  }
  static std::string Read(const std::string& path) { return ReadAll(path); }
  std::vector<std::string> Lines() const {
    return absl::StrSplit(out_, '\n', absl::SkipEmpty());
  }

  // What was printed fits 79 columns.
  void ExpectNarrow() const {
    for (const std::string& line : Lines()) EXPECT_LE(line.size(), 79) << line;
  }

  const TempFolder folder_;
  encoderd::testing::FakeEncoderService service_;
  std::string out_;
  std::string err_;
};

// The floats of an .npy after its head.
inline std::vector<float> NpyValues(const std::string& bytes) {
  std::vector<float> values((bytes.size() - kNpyHeaderBytes) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + kNpyHeaderBytes,
              values.size() * sizeof(float));
  return values;
}

}  // namespace encoderd::ctl

#endif  // ENCODERD_TESTS_UNIT_CLIENT_ENCODERCTL_FIXTURE_H_
