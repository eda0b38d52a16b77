#include "client/cpp/same_model.h"

#include <gtest/gtest.h>

namespace encoderd::client {
namespace {

constexpr char kChanged[] =
    "the server's model or its settings changed during the job: the "
    "fingerprint is two and was one; the vectors before and after must not be "
    "mixed, so start the job again with one of them";
constexpr char kNotGiven[] =
    "the server's model or its settings are not those of the given "
    "fingerprint: the fingerprint is two, not one; the vectors of the two must "
    "not be mixed, so call a server that has the given one, or embed all texts "
    "again";

TEST(SameModelTest, TheFirstAnswerSetsTheFingerprintOfTheRest) {
  SameModel model("");
  EXPECT_TRUE(model.Check("one").ok());
  EXPECT_TRUE(model.Check("one").ok());
  const absl::Status changed = model.Check("two");
  EXPECT_EQ(changed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(changed.message(), kChanged);
}

TEST(SameModelTest, AFirstAnswerOtherThanTheGivenOneIsNoChange) {
  SameModel model("one");
  const absl::Status other = model.Check("two");
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(other.message(), kNotGiven);
}

TEST(SameModelTest, AChangeAfterTheGivenOneIsAChange) {
  SameModel model("one");
  EXPECT_TRUE(model.Check("one").ok());
  EXPECT_EQ(model.Check("two").message(), kChanged);
}

TEST(SameModelTest, AnAnswerWithoutAFingerprintPasses) {
  SameModel model("one");
  EXPECT_TRUE(model.Check("").ok());
  EXPECT_EQ(model.Check("two").message(), kNotGiven);
}

}  // namespace
}  // namespace encoderd::client
