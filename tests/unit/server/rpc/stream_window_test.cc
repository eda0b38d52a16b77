#include "server/rpc/stream_window.h"

#include <gtest/gtest.h>

namespace encoderd {
namespace {

TEST(StreamWindowTest, HasRoomForRequestsBelowTheirLimit) {
  StreamWindow window;
  for (int64_t i = 0; i < StreamWindow::kMaxRequests; ++i) {
    EXPECT_TRUE(window.Room()) << i;
    window.Add(1);
  }
  EXPECT_FALSE(window.Room());
  window.Remove(1);
  EXPECT_TRUE(window.Room());
}

TEST(StreamWindowTest, HasRoomForBytesBelowTheirLimit) {
  StreamWindow window;
  window.Add(StreamWindow::kMaxBytes - 1);
  EXPECT_TRUE(window.Room());
  window.Add(1);
  EXPECT_FALSE(window.Room());
  window.Remove(1);
  EXPECT_TRUE(window.Room());
}

TEST(StreamWindowTest, HoldsALargerRequestByItself) {
  StreamWindow window;
  window.Add(10 * StreamWindow::kMaxBytes);
  EXPECT_FALSE(window.Room());
  window.Remove(10 * StreamWindow::kMaxBytes);
  EXPECT_TRUE(window.Room());
}

TEST(StreamWindowTest, CountsAnAnswerInsteadOfItsRequest) {
  StreamWindow window;
  window.Add(StreamWindow::kMaxBytes);
  window.Add(2);
  EXPECT_FALSE(window.Room());
  window.Remove(StreamWindow::kMaxBytes);
  window.Add(StreamWindow::kMaxBytes - 3);
  EXPECT_TRUE(window.Room());
  EXPECT_FALSE(window.empty());
}

TEST(StreamWindowTest, IsEmptyOnceNothingIsHeldEvenWithoutBytes) {
  StreamWindow window;
  EXPECT_TRUE(window.empty());
  window.Add(0);
  EXPECT_FALSE(window.empty());
  window.Remove(0);
  EXPECT_TRUE(window.empty());
}

}  // namespace
}  // namespace encoderd
