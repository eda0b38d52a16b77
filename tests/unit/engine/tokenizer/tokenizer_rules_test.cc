// RulesText: every rule that changes ids changes it.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "engine/tokenizer/files/tokenizer_spec.h"
#include "tests/unit/engine/tokenizer/small_tokenizer.h"

namespace encoderd {
namespace {

using Change = std::function<void(TokenizerSpec*)>;

// Normalizer steps, one of each kind and of each setting.
std::vector<NormalizerStep> Steps() {
  return {BertNormalizerOptions{false, true, true, true},
          BertNormalizerOptions{true, false, true, true},
          BertNormalizerOptions{true, true, false, true},
          BertNormalizerOptions{true, true, true, false},
          UnicodeFormStep{unicode::Form::kNfc},
          UnicodeFormStep{unicode::Form::kNfkd},
          LowercaseStep{},
          StripAccentsStep{},
          StripStep{true, true},
          StripStep{true, false},
          StripStep{false, true},
          PrependStep{"a"},
          PrependStep{"b"},
          ReplaceStep{"a", "b", 0},
          ReplaceStep{"a", "b", 2},
          ReplaceStep{"a", "c", 0},
          ReplaceStep{"b", "b", 0}};
}

std::vector<PreTokenizerStep> Splits() {
  return {ByteLevelSplit{true, true},
          ByteLevelSplit{false, true},
          ByteLevelSplit{true, false},
          WhitespaceSplit{},
          WordSplit{},
          MetaspaceSplit{},
          MetaspaceSplit{0x5f, MetaspaceSplit::kAlways, true},
          MetaspaceSplit{0x2581, MetaspaceSplit::kNever, true},
          MetaspaceSplit{0x2581, MetaspaceSplit::kAlways, false}};
}

std::vector<ModelSpec> Models() {
  return {WordPieceOptions{"[PAD]", "##", 100},
          WordPieceOptions{"[UNK]", "@@", 100},
          WordPieceOptions{"[UNK]", "##", 99},
          BytePairOptions{},
          BytePairOptions{{{7, 8, 9}}, {}, false, false},
          BytePairOptions{{{8, 7, 9}}, {}, false, false},
          BytePairOptions{{{7, 8, 9}, {8, 7, 9}}, {}, false, false},
          BytePairOptions{{{8, 7, 9}, {7, 8, 9}}, {}, false, false},
          BytePairOptions{{}, "", false, false},
          BytePairOptions{{}, "a", false, false},
          BytePairOptions{{}, {}, true, false},
          BytePairOptions{{}, {}, false, true},
          UnigramOptions{{-1, -2}, 0, false},
          UnigramOptions{{-2, -1}, 0, false},
          UnigramOptions{{-1, -2}, 1, false},
          UnigramOptions{{-1, -2}, 0, true}};
}

std::vector<Change> TokenChanges() {
  return {[](TokenizerSpec* spec) { spec->added_tokens.pop_back(); },
          [](TokenizerSpec* spec) { spec->added_tokens[0].content = "x"; },
          [](TokenizerSpec* spec) { spec->added_tokens[0].id = 9; },
          [](TokenizerSpec* spec) { spec->added_tokens[0].single_word = true; },
          [](TokenizerSpec* spec) { spec->added_tokens[0].lstrip = true; },
          [](TokenizerSpec* spec) { spec->added_tokens[0].rstrip = true; },
          [](TokenizerSpec* spec) { spec->added_tokens[0].normalized = true; },
          [](TokenizerSpec* spec) { spec->added_tokens[0].special = true; }};
}

TEST(TokenizerRulesTest, EveryRuleCounts) {
  std::vector<Change> changes = TokenChanges();
  for (const NormalizerStep& step : Steps())
    changes.push_back([step](auto* spec) { spec->normalizer = {step}; });
  for (const PreTokenizerStep& split : Splits())
    changes.push_back([split](auto* spec) { spec->pre_tokenizer = {split}; });
  for (const ModelSpec& model : Models())
    changes.push_back([model](auto* spec) { spec->model = model; });
  changes.push_back([](auto* spec) {
    spec->normalizer = {LowercaseStep(), StripAccentsStep()};
  });
  changes.push_back([](auto* spec) {
    spec->normalizer = {StripAccentsStep(), LowercaseStep()};
  });

  std::set<std::string> texts = {RulesText(SmallSpec())};
  for (size_t i = 0; i < changes.size(); ++i) {
    TokenizerSpec spec = SmallSpec();
    changes[i](&spec);
    EXPECT_TRUE(texts.insert(RulesText(spec)).second) << i;
  }
}

TEST(TokenizerRulesTest, RemarksDoNotCount) {
  TokenizerSpec spec = SmallSpec();
  spec.remarks.notes = {"a note"};
  EXPECT_EQ(RulesText(spec), RulesText(SmallSpec()));
}

}  // namespace
}  // namespace encoderd
