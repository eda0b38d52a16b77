// The whole way of a text through Model: ids, vectors and what Model says of
// itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/error.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/model.h"
#include "tests/golden/golden.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tolerances.h"

namespace encoderd {
namespace {

constexpr char kData[] = ENCODERD_SOURCE_DIR "/tests/golden";

// Texts of texts.json: one string or two each.
absl::StatusOr<std::vector<std::vector<std::string>>> ReadTexts() {
  std::vector<std::string> sentences;
  std::ifstream file(absl::StrCat(kData, "/sentences.txt"));
  for (std::string line; std::getline(file, line);) sentences.push_back(line);
  const auto text = ReadWholeFile(kData, "texts.json", 1 << 20);
  if (!text.ok()) return text.status();
  const auto json = ParseJson(*text, "texts.json");
  if (!json.ok()) return json.status();
  std::vector<std::vector<std::string>> texts;
  for (const Json& parts : *json) {
    texts.emplace_back();
    for (const Json& part : parts) {
      std::vector<std::string> lines;
      for (size_t line : part) lines.push_back(sentences.at(line));
      texts.back().push_back(absl::StrJoin(lines, " "));
    }
  }
  return texts;
}

TEST(TextTest, TextsGiveTheIdsAndTheVectorsOfTheReference) {
  const char* folder = std::getenv("ENCODERD_TEST_MODEL");
  ASSERT_NE(folder, nullptr)
      << "this test needs all-MiniLM-L6-v2: run deploy/fetch-model.sh and set "
         "ENCODERD_TEST_MODEL to the folder that it prints";
  const auto texts = ReadTexts();
  ASSERT_THAT(texts, IsOk());
  ASSERT_GE(texts->size(), 500u);
  const auto golden = ReadGolden("minilm");
  ASSERT_THAT(golden, IsOk());
  const auto model =
      Model::Load(folder, {.device = "cpu", .dtype = "fp32", .max_len = 512});
  ASSERT_THAT(model, IsOk());
  const ModelInfo& info = (*model)->info();
  auto session = (*model)->NewSession({});
  ASSERT_THAT(session, IsOk());
  const TokenizerScratchPtr scratch = (*model)->tokenizer().NewScratch();

  double worst = 0;
  int computed = 0;
  for (size_t i = 0; i < texts->size(); ++i) {
    const std::vector<std::string>& parts = (*texts)[i];
    Encoding encoding;
    const absl::Status status =
        parts.size() == 1
            ? (*model)->tokenizer().Encode(parts[0], {}, scratch.get(),
                                           &encoding)
            : (*model)->tokenizer().EncodePair(parts[0], parts[1], {},
                                               scratch.get(), &encoding);
    ASSERT_THAT(status, IsOk());
    const TokenSequence& wanted = golden->sequences[i];
    ASSERT_EQ(encoding.token_ids, wanted.token_ids) << parts[0];
    ASSERT_EQ(encoding.segment_ids, wanted.segment_ids) << parts[0];
    // golden_test computes all of them from these ids; here, some alone.
    if (i % 4 != 0 && parts.size() == 1) continue;
    PackedBatch batch;
    batch.Append({encoding.token_ids, encoding.segment_ids, {}}, info.limits);
    ForwardResult result;
    const SequenceOutput output = {.pooling = info.config.pooling,
                                   .normalize = info.config.normalize};
    ASSERT_THAT((*session)->Run(batch, {&output, 1}, &result), IsOk());
    const Difference difference =
        Compare(result.Output(0).data(), golden->pooled[i]);
    ASSERT_GE(difference.cosine, kFp32Cosine) << parts[0];
    ASSERT_LE(difference.max_difference, kFp32Vector) << parts[0];
    worst = std::max(worst, difference.max_difference);
    ++computed;
  }
  std::cout << texts->size() << " texts, " << computed
            << " of them computed, max |d| " << worst << "\n";
}

// Random weights with a separate tokenizer: each sentence that fits gives
// the golden's ids and vector; this many fit, and no other.
class OwnTokenizerTest : public ::testing::TestWithParam<std::string> {};

// A random checkpoint with its own tokenizer, on the CPU in fp32.
absl::StatusOr<std::shared_ptr<const Model>> LoadWithTokenizer(
    const std::string& name, const TempFolder& folder) {
  WriteCheckpoint(CheckpointSpecOf(name), folder.path());
  const auto tokenizer_json = ReadWholeFile(
      kData, absl::StrCat("data/", name, "_tokenizer.json"), 4 << 20);
  if (!tokenizer_json.ok()) return tokenizer_json.status();
  folder.Write("tokenizer.json", *tokenizer_json);
  return Model::Load(folder.path(), {.device = "cpu", .dtype = "fp32"});
}

TEST_P(OwnTokenizerTest, TextsGiveTheIdsAndTheVectorsOfTheReference) {
  const std::string name = GetParam();
  const TempFolder folder;
  const auto golden = ReadGolden(absl::StrCat(name, "_text"));
  ASSERT_THAT(golden, IsOk());
  const auto model = LoadWithTokenizer(name, folder);
  ASSERT_THAT(model, IsOk());
  const ModelInfo& info = (*model)->info();
  auto session = (*model)->NewSession({});
  ASSERT_THAT(session, IsOk());
  const TokenizerScratchPtr scratch = (*model)->tokenizer().NewScratch();

  std::ifstream file(absl::StrCat(kData, "/sentences.txt"));
  size_t next = 0;
  for (std::string line; std::getline(file, line);) {
    Encoding encoding;
    ASSERT_THAT(
        (*model)->tokenizer().Encode(line, {}, scratch.get(), &encoding),
        IsOk());
    const int32_t room =
        info.limits.position_rows - info.limits.position_offset;
    if (encoding.token_ids.size() > static_cast<size_t>(room)) continue;
    ASSERT_LT(next, golden->sequences.size());
    const TokenSequence& wanted = golden->sequences[next];
    ASSERT_TRUE(absl::MakeConstSpan(encoding.token_ids) == wanted.token_ids)
        << line;
    ASSERT_TRUE(absl::MakeConstSpan(encoding.segment_ids) == wanted.segment_ids)
        << line;
    PackedBatch batch;
    batch.Append({encoding.token_ids, encoding.segment_ids, {}}, info.limits);
    ForwardResult result;
    const SequenceOutput output = {.pooling = info.config.pooling,
                                   .normalize = info.config.normalize};
    ASSERT_THAT((*session)->Run(batch, {&output, 1}, &result), IsOk());
    const Difference difference =
        Compare(result.Output(0).data(), golden->pooled[next]);
    ASSERT_GE(difference.cosine, kFp32Cosine) << line;
    ASSERT_LE(difference.max_difference, kFp32Vector) << line;
    ++next;
  }
  EXPECT_EQ(next, golden->sequences.size());
  EXPECT_GE(next, 50u);
}

std::vector<std::string> OwnTokenizers() {
  std::vector<std::string> names;
  for (const CheckpointSpec& spec : AllCheckpointSpecs()) {
    const std::string file =
        absl::StrCat(kData, "/data/", spec.name, "_tokenizer.json");
    if (std::filesystem::exists(file)) names.push_back(spec.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Architectures, OwnTokenizerTest,
                         ::testing::ValuesIn(OwnTokenizers()),
                         [](const auto& param) { return param.param; });

// GPT-2 has no special tokens: what has no text has no tokens at all.
TEST(TextTest, AnInputWithoutATokenIsRefusedAsEmpty) {
  for (const auto& [name, tokens] :
       {std::pair("gpt2", size_t{0}), std::pair("modernbert", size_t{3})}) {
    const TempFolder folder;
    const auto model = LoadWithTokenizer(name, folder);
    ASSERT_THAT(model, IsOk());
    const TokenizerScratchPtr scratch = (*model)->tokenizer().NewScratch();
    Encoding encoding;
    ASSERT_THAT(
        (*model)->tokenizer().EncodePair("", "", {}, scratch.get(), &encoding),
        IsOk());
    EXPECT_EQ(encoding.token_ids.size(), tokens) << name;
    TokenSequence sequence;
    sequence.token_ids.assign(encoding.token_ids.begin(),
                              encoding.token_ids.end());
    const absl::Status status =
        ValidateSequence(sequence, (*model)->info().limits);
    if (tokens > 0) {
      EXPECT_THAT(status, IsOk());
    } else {
      EXPECT_THAT(status, IsError(absl::StatusCode::kInvalidArgument, ""));
      EXPECT_EQ(GetErrorDetail(status)->reason, "EMPTY_INPUT");
    }
  }
}

TEST(TextTest, TheWeightsOfEveryRandomCheckpointAreTheOnesOfTheGolden) {
  for (const CheckpointSpec& spec : AllCheckpointSpecs()) {
    const TempFolder folder;
    WriteCheckpoint(spec, folder.path());
    const auto model = Model::Load(folder.path(), {.device = "cpu"});
    ASSERT_THAT(model, IsOk()) << spec.name;
    // The metadata of the golden, as it is in its header.
    const auto bytes = ReadWholeFile(
        kData, absl::StrCat("data/", spec.name, ".safetensors"), 4 << 20);
    ASSERT_THAT(bytes, IsOk());
    const std::string entry =
        absl::StrCat("weights_sha256 ", (*model)->info().weights_sha256);
    EXPECT_NE(bytes->find(entry), std::string::npos) << spec.name;
  }
}

}  // namespace
}  // namespace encoderd
