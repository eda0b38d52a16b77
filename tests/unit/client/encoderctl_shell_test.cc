// encoderctl at a terminal and in scripts: progress, exit codes, flags given in
// vain.
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(EncoderctlTest, ShowsNoProgressAmongResultsOnTheSameTerminal) {
  for (const bool out_is_terminal : {false, true}) {
    for (const std::string output : {std::string("-"), folder_.Path("out")}) {
      std::istringstream in;
      std::ostringstream out, err;
      Environment environment{in, out, err};
      environment.out_is_terminal = out_is_terminal;
      environment.err_is_terminal = true;
      EXPECT_EQ(RunEncoderctl({"embed", "--progress=always", "--output", output,
                               "--target", service_.target(), "one"},
                              environment),
                kExitOk);
      const bool glued = out_is_terminal && output == "-";
      EXPECT_EQ(err.str().empty(), glued) << output << ": " << err.str();
    }
  }
}

}  // namespace
}  // namespace encoderd::ctl
