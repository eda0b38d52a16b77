// Which bytes stand for the original's first character: known without places,
// and as the places have it.
#include "engine/tokenizer/normal_text.h"

#include <gtest/gtest.h>

#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/pre_tokenizer.h"

namespace encoderd {
namespace {

NormalText Text(absl::string_view text, int32_t origin, bool tracked) {
  NormalText out;
  out.Assign(text, origin, tracked);
  return out;
}

// Bytes at the front whose place begins at 0.
int32_t PlacesAtStart(const NormalText& text) {
  int32_t at = 0;
  while (at < text.all().end && text.Place({at, at + 1}).begin == 0) ++at;
  return at;
}

TEST(NormalTextTest, TheFirstCharacterStartsTheTextOnlyAtItsBegin) {
  EXPECT_EQ(Text("\u00e9a", 0, false).start_bytes(), 2);
  EXPECT_EQ(Text("\u00e9a", 0, true).start_bytes(), 2);
  EXPECT_EQ(Text("\u00e9a", 5, false).start_bytes(), 0);
  EXPECT_EQ(Text("", 0, false).start_bytes(), 0);
}

TEST(NormalTextTest, WithoutPlacesTheFirstCharacterIsToldFromLaterOnes) {
  const NormalText text = Text("\u00e9ab", 0, false);
  EXPECT_EQ(text.Place({0, 2}).begin, 0);
  EXPECT_EQ(text.Place({1, 3}).begin, 0);
  EXPECT_NE(text.Place({2, 3}).begin, 0);
}

TEST(NormalTextTest, PartsBringTheirShareOfTheFirstCharacter) {
  const NormalText text = Text("\u4e2da", 0, false);
  NormalText out;
  out.Reset(false);
  out.Append("<", text.Place({0, 3}));
  out.Append(text, {1, 4});
  EXPECT_EQ(out.start_bytes(), 3);
  out.Append(text, {0, 1});  // behind a later character
  EXPECT_EQ(out.start_bytes(), 3);
}

TEST(NormalTextTest, StepsKeepTheStartAsThePlacesHaveIt) {
  const std::vector<std::vector<NormalizerStep>> normalizers = {
      {UnicodeFormStep{unicode::Form::kNfkd}, StripAccentsStep{},
       LowercaseStep{}},
      {UnicodeFormStep{unicode::Form::kNfc}, StripStep{}},
      {PrependStep{"x"}, ReplaceStep{"a", "", 0}, ReplaceStep{" ", "_", 1}},
      {BertNormalizerOptions{}},
  };
  for (const auto& steps : normalizers) {
    const Normalizer normalizer(steps);
    for (const char* source :
         {"", "a", "\u0301a", "\u00a8a", "\u0130b", " \u00e9", "\uac01a", "aab",
          "\u0001a", "e\u0301\u0316x", "\u1e9b\u0323", "  a  "}) {
      for (const int32_t origin : {0, 7}) {
        NormalText plain = Text(source, origin, false);
        NormalText tracked = Text(source, origin, true);
        Normalizer::Scratch scratch;
        normalizer.Apply(&plain, &scratch);
        normalizer.Apply(&tracked, &scratch);
        EXPECT_EQ(plain.text(), tracked.text()) << source;
        EXPECT_EQ(plain.start_bytes(), PlacesAtStart(tracked)) << source;
        EXPECT_EQ(tracked.start_bytes(), PlacesAtStart(tracked)) << source;
      }
    }
  }
}

TEST(NormalTextTest, MetaspaceMarksTheFirstWordWithoutPlaces) {
  const PreTokenizer pre_tokenizer(
      {WhitespaceSplit{},
       MetaspaceSplit{0x2581, MetaspaceSplit::kFirst, true}});
  PreTokenizer::Scratch scratch;
  for (const bool tracked : {false, true}) {
    const NormalText text = Text("ab c", 0, tracked);
    EXPECT_EQ(pre_tokenizer.Split(text, text.all(), &scratch).text->text(),
              "\u2581abc");
    const NormalText later = Text("ab c", 3, tracked);
    EXPECT_EQ(pre_tokenizer.Split(later, later.all(), &scratch).text->text(),
              "abc");
  }
}

}  // namespace
}  // namespace encoderd
