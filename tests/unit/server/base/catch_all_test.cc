#include "server/base/catch_all.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace encoderd {
namespace {

TEST(CatchAllTest, WhatIsThrownBecomesInternal) {
  EXPECT_EQ(CatchAll([]() -> absl::Status { throw std::bad_alloc(); }).code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(CatchAll([]() -> absl::Status { throw std::runtime_error("why"); }),
            absl::InternalError("exception: why"));
  EXPECT_EQ(CatchAll([]() -> absl::Status { throw 7; }),
            absl::InternalError("exception of an unknown type"));
}

TEST(CatchAllTest, WhatIsReturnedStaysAsItIs) {
  EXPECT_EQ(CatchAll([] { return absl::AbortedError("own"); }),
            absl::AbortedError("own"));
  EXPECT_EQ(CatchAll([] { return absl::OkStatus(); }), absl::OkStatus());
}

}  // namespace
}  // namespace encoderd
