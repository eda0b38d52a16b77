#include "engine/tokenizer/post_processor.h"

#include <gtest/gtest.h>

namespace encoderd {
namespace {

std::string Trim(const std::string& value, const std::string& text,
                 ByteOffset place, bool first = false, bool prefix = false) {
  PostProcessor post;
  post.add_prefix_space = prefix;
  TrimOffset(post, value, text, first, &place);
  return text.substr(place.begin, place.end - place.begin);
}

TEST(PostProcessorTest, TheSpacesOfATokenAreLeftOut) {
  EXPECT_EQ(Trim("\u0120b", "a b", {1, 3}), "b");
  EXPECT_EQ(Trim("\u0120\u0120b", "a  b", {1, 4}), "b");
  EXPECT_EQ(Trim("b\u0120", "a b ", {2, 4}), "b");
  EXPECT_EQ(Trim("b", "a b", {2, 3}), "b");
  EXPECT_EQ(Trim("\u0120\u0120", "a   b", {1, 3}), "");
  EXPECT_EQ(Trim("\u3000 <m>", "a\u3000 <m>", {1, 8}), "<m>");
}

TEST(PostProcessorTest, ASpaceThatWasPutThereIsNotInTheText) {
  EXPECT_EQ(Trim("\u0120b", "bc", {0, 1}, true, true), "b");
  EXPECT_EQ(Trim("\u0120b", "bc", {0, 1}, true, false), "");
  EXPECT_EQ(Trim("\u0120\u0120b", "  b", {0, 3}, true, true), "b");
}

TEST(PostProcessorTest, APlaceWithoutThatMuchTextBeforeItsEndStays) {
  EXPECT_EQ(Trim("b\u0120\u0120", "b", {0, 1}), "b");
}

}  // namespace
}  // namespace encoderd
