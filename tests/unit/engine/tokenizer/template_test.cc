#include "engine/tokenizer/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;

constexpr int kCls = 90, kSep = 91;

Encoding Apply(const Template& made, const std::vector<int32_t>& first,
               const std::vector<int32_t>* second = nullptr) {
  std::vector<ByteOffset> places(8, ByteOffset{5, 6});
  const TextTokens a{first, absl::MakeSpan(places).first(first.size())};
  TextTokens b;
  if (second != nullptr) {
    b = {*second, absl::MakeSpan(places).first(second->size())};
  }
  Encoding out;
  made.Apply(a, second == nullptr ? nullptr : &b, true, &out);
  return out;
}

TEST(TemplateTest, PutsSpecialTokensAroundOneTextAndBetweenTwo) {
  const Template made = Template::Bert(kCls, kSep);
  const std::vector<int32_t> second = {3};
  Encoding out = Apply(made, {1, 2});
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, 1, 2, kSep));
  EXPECT_THAT(out.segment_ids, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(out.special, ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(out.offsets[0].end, 0);
  EXPECT_EQ(out.offsets[1].begin, 5);
  out = Apply(made, {1, 2}, &second);
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, 1, 2, kSep, 3, kSep));
  EXPECT_THAT(out.segment_ids, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(out.text_tokens, ElementsAre(2, 1));
  EXPECT_EQ(made.num_special_tokens(false), 2);
  EXPECT_EQ(made.num_special_tokens(true), 3);
}

TEST(TemplateTest, WithoutOneTheTextsStandAlone) {
  const std::vector<int32_t> second = {3};
  const Encoding out = Apply(Template(), {1, 2}, &second);
  EXPECT_THAT(out.token_ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(out.segment_ids, ElementsAre(0, 0, 1));
}

TEST(TemplateTest, DropsSegments) {
  Template made = Template::Bert(kCls, kSep);
  EXPECT_TRUE(made.DropSegments());
  EXPECT_FALSE(made.DropSegments());
  const std::vector<int32_t> second = {3};
  EXPECT_THAT(Apply(made, {1}, &second).segment_ids,
              ElementsAre(0, 0, 0, 0, 0));
}

TEST(TemplateTest, CutsOneTextAtTheEndOrTheStart) {
  const Template made = Template::Bert(kCls, kSep);
  Encoding out = Apply(made, {1, 2, 3, 4});
  made.Truncate(6, TruncateSide::kEnd, &out);
  EXPECT_EQ(out.token_ids.size(), 6u);
  made.Truncate(5, TruncateSide::kEnd, &out);
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, 1, 2, 3, kSep));
  made.Truncate(4, TruncateSide::kStart, &out);
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, 2, 3, kSep));
  EXPECT_THAT(out.special, ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(out.offsets.size(), 4u);
  made.Truncate(2, TruncateSide::kEnd, &out);
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, kSep));
}

TEST(TemplateTest, CutsTheLongerOfTwoTextsFirst) {
  const Template made = Template::Bert(kCls, kSep);
  const std::vector<int32_t> second = {5, 6};
  Encoding out = Apply(made, {1, 2, 3, 4}, &second);
  made.Truncate(8, TruncateSide::kEnd, &out);
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, 1, 2, 3, kSep, 5, 6, kSep));
  made.Truncate(7, TruncateSide::kStart, &out);
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, 2, 3, kSep, 5, 6, kSep));
  made.Truncate(6, TruncateSide::kEnd, &out);
  EXPECT_THAT(out.token_ids, ElementsAre(kCls, 2, kSep, 5, 6, kSep));
  EXPECT_THAT(out.segment_ids, ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(TemplateTest, SaysWhereEachTextBeginsAlsoAfterACut) {
  const Template made = Template::Bert(kCls, kSep);
  const std::vector<int32_t> second = {5, 6};
  Encoding out = Apply(made, {1, 2, 3, 4}, &second);
  EXPECT_THAT(out.text_begins, ElementsAre(1, 6));
  EXPECT_THAT(out.text_tokens, ElementsAre(4, 2));
  made.Truncate(7, TruncateSide::kStart, &out);
  EXPECT_THAT(out.text_begins, ElementsAre(1, 4));
  EXPECT_THAT(out.text_tokens, ElementsAre(2, 2));
  out = Apply(made, {1, 2, 3});
  EXPECT_EQ(out.text_begins[0], 1);
}

TEST(TemplateTest, RefusesTemplatesThatDoNotFit) {
  using Piece = TemplatePiece;
  const std::vector<Piece> a = {{Piece::kFirst, 0, 0}};
  const std::vector<Piece> ab = {{Piece::kFirst, 0, 0}, {Piece::kSecond, 0, 1}};
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(Template(a, ab).Validate(10), IsOk());
  EXPECT_THAT(Template(ab, ab).Validate(10), IsError(kLoss, "exactly once"));
  EXPECT_THAT(Template(a, a).Validate(10), IsError(kLoss, "exactly once"));
  EXPECT_THAT(Template({}, ab).Validate(10), IsError(kLoss, "exactly once"));
  EXPECT_THAT(Template({{Piece::kFirst, 0, 2}}, ab).Validate(10),
              IsError(kLoss, "segment 2"));
  EXPECT_THAT(Template::Bert(9, 10).Validate(10),
              IsError(kLoss, "token id 10"));
  const std::vector<Piece> many(Template::kMaxPieces + 1);
  EXPECT_THAT(Template(many, ab).Validate(10),
              IsError(kLoss, "the template has 65 pieces; at most 64"));
  EXPECT_THAT(Template(a, many).Validate(10),
              IsError(kLoss, "the template has 65 pieces; at most 64"));
}

}  // namespace
}  // namespace encoderd
