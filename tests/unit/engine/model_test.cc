#include "engine/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace encoderd {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

class ModelTest : public testing::Test {
 protected:
  void SetUp() override {
    spec_ = CheckpointSpecOf("positions100");
    WriteCheckpoint(spec_, folder_.path());
  }

  absl::StatusOr<std::shared_ptr<const Model>> Load(int32_t max_len = 0) {
    return Model::Load(folder_.path(), {.device = "cpu", .max_len = max_len});
  }

  // The token ids of `text` with special tokens.
  static TokenSequence Ids(const Model& model, const std::string& text) {
    const TokenizerScratchPtr scratch = model.tokenizer().NewScratch();
    Encoding encoding;
    EXPECT_THAT(model.tokenizer().Encode(text, {}, scratch.get(), &encoding),
                IsOk());
    return {encoding.token_ids, encoding.segment_ids, {}};
  }

  CheckpointSpec spec_;
  const TempFolder folder_;
};

// As the files of many models that lowercase anyway have it.
TEST_F(ModelTest, LowercasesAsSentenceTransformersIsToldTo) {
  const auto before = Load();
  ASSERT_THAT(before, IsOk());
  folder_.Write("sentence_bert_config.json", R"({"do_lower_case": true})");
  const auto after = Load();
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ((*after)->info().fingerprint, (*before)->info().fingerprint);
  EXPECT_EQ(Ids(**after, "ABC").token_ids, Ids(**before, "abc").token_ids);
}

TEST_F(ModelTest, WarnsWhereTransformersWouldTokenizeOtherwise) {
  folder_.Write("tokenizer_config.json", "{}");
  folder_.Write("tokenizer.json", R"({"added_tokens": [],
      "normalizer": {"type": "BertNormalizer", "clean_text": true,
        "handle_chinese_chars": true, "strip_accents": null,
        "lowercase": false},
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
      "model": {"type": "WordPiece", "unk_token": "[UNK]",
                "vocab": {"[UNK]": 0, "a": 1}}})");
  const auto model = Load();
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT((*model)->info().config.warnings,
              Contains(HasSubstr("tokenizer.json's lowercase false applies")));
}

TEST_F(ModelTest, AFileThatIsNotAsTheManifestSaysIsRefusedByName) {
  folder_.Write("SHA256SUMS", std::string(64, '0') + "  config.json\n");
  EXPECT_THAT(Load().status(), IsError(kDataLoss, "'config.json'"));
}

TEST_F(ModelTest, SaysWhatAPathIsInsteadOfAModelsFolder) {
  folder_.Write("file", "x");
  folder_.Write("empty/x", "x");
  folder_.Write("cache/snapshots/x", "x");
  std::filesystem::create_symlink("loop", folder_.Path("loop"));
  const std::pair<std::string, std::string> kCases[] = {
      {"sentence-transformers/all-MiniLM-L6-v2",
       "no folder 'sentence-transformers/all-MiniLM-L6-v2': No such file or "
       "directory; if it is a name on the Hugging Face Hub, nothing is "
       "downloaded from there: deploy/fetch-model.sh fetches this one and "
       "prints its folder"},
      {"BAAI/bge-m3",
       "fetch it, such as with `hf download BAAI/bge-m3 --local-dir DIR`, and "
       "give DIR"},
      {"~/models/minilm",
       "no folder '~/models/minilm': No such file or directory; the shell "
       "expands ~ at the start of a word only: write --model=\"$HOME/...\""},
      {"/none/model",
       "no folder '/none/model': No such file or directory; give the folder "
       "that holds config.json and the weights"},
      {folder_.Path("loop"),
       "no folder '" + folder_.Path("loop") +
           "': Too many levels of symbolic links; give the folder that holds "
           "config.json and the weights"},
      {folder_.Path("file"), "'" + folder_.Path("file") +
                                 "' is a file; give the folder that holds it: "
                                 "'" +
                                 folder_.path() + "'"},
      {folder_.Path("empty"), "no config.json in the folder '" +
                                  folder_.Path("empty") +
                                  "'; give the folder of a model"},
      {folder_.Path("cache"),
       "it is a cache of the Hugging Face Hub: give a "
       "folder of its snapshots/"}};
  for (const auto& [folder, message] : kCases) {
    EXPECT_THAT(Model::Load(folder, {.device = "cpu"}).status(),
                IsError(absl::StatusCode::kNotFound, message));
  }
}

TEST_F(ModelTest, AFolderThatThisUserMayNotEnterIsNotTakenForAnEmptyOne) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::none);
  {
    const Unprivileged user;
    EXPECT_THAT(Model::Load(folder_.path(), {.device = "cpu"}).status(),
                IsError(absl::StatusCode::kPermissionDenied,
                        ":rX " + folder_.path() + "`, and `setfacl -m u:"));
    EXPECT_THAT(
        Model::Load(folder_.Path("in/model"), {.device = "cpu"}).status(),
        IsError(absl::StatusCode::kPermissionDenied, "folder '"));
  }
  std::filesystem::permissions(folder_.path(),
                               std::filesystem::perms::owner_all);
}

TEST_F(ModelTest, NamesTheFolderThatHasNoWeights) {
  std::filesystem::remove(folder_.Path("model.safetensors"));
  EXPECT_THAT(Load().status(),
              IsError(absl::StatusCode::kNotFound,
                      "no weights in the folder '" + folder_.path() +
                          "': neither model.safetensors nor "
                          "model.safetensors.index.json; fetch the model "
                          "again"));
}

TEST_F(ModelTest, NamesTheModuleAfterPoolingThatHasNoWeights) {
  folder_.Write("modules.json", R"([
      {"type":"sentence_transformers.models.Transformer","path":""},
      {"type":"sentence_transformers.models.Pooling","path":"1_Pooling"},
      {"type":"sentence_transformers.models.Dense","path":"2_Dense"}])");
  folder_.Write("2_Dense/config.json",
                R"({"in_features":64,"out_features":8})");
  EXPECT_THAT(Load().status(),
              IsError(absl::StatusCode::kNotFound,
                      "module 2_Dense: no weights in the folder '" +
                          folder_.Path("2_Dense") + "'"));
}

TEST_F(ModelTest, SaysWhatItLoaded) {
  const auto model = Load();
  ASSERT_THAT(model, IsOk());
  const ModelInfo& info = (*model)->info();
  EXPECT_EQ(info.config.hidden_size, 64);
  EXPECT_EQ(info.config.pooling, Pooling::kWeightedMean);
  EXPECT_TRUE(info.config.normalize);
  EXPECT_EQ(info.limits.token_rows, 400);
  EXPECT_EQ(info.limits.segment_rows, 2);
  EXPECT_EQ(info.limits.position_rows, 100);
  EXPECT_EQ(info.limits.max_len, 100);
  EXPECT_EQ(info.dtype, "fp32");
  EXPECT_THAT(info.device, HasSubstr("cpu"));
  EXPECT_EQ(info.tokenizer, "WordPiece");
  EXPECT_EQ(info.weights_sha256.size(), 64u);
  EXPECT_EQ(info.fingerprint.size(), 16u);
}

// What changes a vector changes the fingerprint; what does not leaves it.
TEST_F(ModelTest, TheFingerprintIsThatOfTheVectors) {
  const std::string before = Load().value()->info().fingerprint;
  folder_.Write("README.md", "another description");
  EXPECT_EQ(Load().value()->info().fingerprint, before);

  const std::string shorter = Load(50).value()->info().fingerprint;
  EXPECT_NE(shorter, before);
  const auto bf16 = Model::Load(
      folder_.path(), {.device = "cpu", .dtype = "bf16", .max_len = 50});
  ASSERT_THAT(bf16, IsOk());
  EXPECT_NE((*bf16)->info().fingerprint, shorter);
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts": {"query": "q: "}})");
  const std::string prompted = Load(50).value()->info().fingerprint;
  EXPECT_NE(prompted, shorter);
  // Two words of the vocabulary change places.
  std::ifstream file(folder_.Path("vocab.txt"));
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word);) words.push_back(word);
  std::swap(words[398], words[399]);
  folder_.Write("vocab.txt", absl::StrJoin(words, "\n") + "\n");
  const std::string swapped = Load(50).value()->info().fingerprint;
  EXPECT_NE(swapped, prompted);
  folder_.Write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer",
      "do_lower_case": true, "added_tokens_decoder":
      {"1": {"content": "[UNK]", "special": true, "single_word": true}}})");
  EXPECT_NE(Load(50).value()->info().fingerprint, swapped);
  CheckpointSpec other = spec_;
  const auto fingerprint = [&] {
    WriteCheckpoint(other, folder_.path());
    return Load(50).value()->info().fingerprint;
  };
  const std::string pooled = fingerprint();
  other.pooling = other.pooling == "cls" ? "max" : "cls";
  const std::string pooled_otherwise = fingerprint();
  EXPECT_NE(pooled_otherwise, pooled);
  other.normalize = !other.normalize;
  const std::string scaled = fingerprint();
  EXPECT_NE(scaled, pooled_otherwise);
  other.seed += 1;
  EXPECT_NE(fingerprint(), scaled);
}

TEST_F(ModelTest, TheFingerprintIsOfTheTemplatesSegments) {
  std::ifstream file(folder_.Path("vocab.txt"));
  nlohmann::json json = nlohmann::json::parse(R"({"added_tokens": [],
      "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"},
      "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {}},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "tokens": ["[CLS]"]}}}})");
  int id = 0;
  for (std::string word; std::getline(file, word); ++id)
    json["model"]["vocab"][word] = id;
  json["post_processor"]["special_tokens"]["[CLS]"]["ids"] = {
      json["model"]["vocab"]["[CLS]"]};
  std::set<std::string> all;
  for (const char* place :
       {"/single/0/SpecialToken/type_id", "/single/1/Sequence/type_id",
        "/pair/1/SpecialToken/type_id", "/pair/2/Sequence/type_id"}) {
    nlohmann::json changed = json;
    auto& value =
        changed["post_processor"][nlohmann::json::json_pointer(place)];
    value = 1 - value.get<int>();
    folder_.Write("tokenizer.json", changed.dump());
    EXPECT_TRUE(all.insert(Load().value()->info().fingerprint).second) << place;
  }
}

TEST_F(ModelTest, CountsTheParametersOfEachTableAndOfTheWhole) {
  const ModelInfo info = Load().value()->info();
  EXPECT_EQ(info.parameters.token_table, 400 * 64);
  EXPECT_EQ(info.parameters.position_table, 100 * 64);
  EXPECT_EQ(info.parameters.segment_table, 2 * 64);
  // Every tensor of the checkpoint belongs to the encoder.
  int64_t values = 0;
  for (const TensorToWrite& tensor : CheckpointTensors(spec_)) {
    values += static_cast<int64_t>(tensor.bytes.size()) / 4;
  }
  EXPECT_EQ(info.parameters.total, values);
}

// Tables of embedding_size columns; weights that layers share count once.
TEST_F(ModelTest, CountsFactoredTablesAndSharedLayersAsTheyAre) {
  for (const char* name : {"electra", "albert_groups", "distilbert", "mpnet"}) {
    const CheckpointSpec spec = CheckpointSpecOf(name);
    WriteCheckpoint(spec, folder_.path());
    const ModelInfo info = Load().value()->info();
    int64_t values = 0;
    for (const TensorToWrite& tensor : CheckpointTensors(spec)) {
      values += static_cast<int64_t>(tensor.bytes.size()) / 4;
    }
    EXPECT_EQ(info.parameters.total, values) << name;
    EXPECT_EQ(info.parameters.token_table,
              spec.vocab * info.config.table_columns())
        << name;
  }
  WriteCheckpoint(CheckpointSpecOf("electra"), folder_.path());
  const ModelInfo info = Load().value()->info();
  EXPECT_EQ(info.parameters.token_table, 250 * 32);
  EXPECT_EQ(info.parameters.position_table, 80 * 32);
  EXPECT_EQ(info.parameters.segment_table, 2 * 32);
}

TEST_F(ModelTest, EmbedsATextAsAUnitVector) {
  const auto model = Load();
  ASSERT_THAT(model, IsOk());
  auto session = (*model)->NewSession({});
  ASSERT_THAT(session, IsOk());
  PackedBatch batch;
  batch.Append(Ids(**model, "a b c word7"), (*model)->info().limits);
  EXPECT_EQ(batch.num_tokens(), 6);
  const SequenceOutput output = {.pooling = Pooling::kMean, .normalize = true};
  ForwardResult result;
  ASSERT_THAT((*session)->Run(batch, {&output, 1}, &result), IsOk());
  double square = 0;
  for (float value : result.Output(0)) square += double{value} * value;
  EXPECT_EQ(result.Output(0).size(), 64u);
  EXPECT_NEAR(square, 1.0, 1e-5);
}

// The experiment of the project's source documents: a table of 100 positions
// and inputs of 50, 100 and 101 tokens.
TEST_F(ModelTest, TakesFiftyAndAHundredTokensAndRefusesOneMore) {
  const auto model = Load();
  ASSERT_THAT(model, IsOk());
  for (int tokens : {50, 100, 101}) {
    std::string text;
    for (int i = 0; i < tokens - 2; ++i) text += "a ";
    const TokenSequence sequence = Ids(**model, text);
    ASSERT_EQ(sequence.size(), tokens);
    const absl::Status status =
        ValidateSequence(sequence, (*model)->info().limits);
    if (tokens <= 100) {
      EXPECT_THAT(status, IsOk()) << tokens;
    } else {
      EXPECT_THAT(status, IsError(kInvalidArgument, "101"));
    }
  }
}

// RoBERTa's table of 514 rows: the first two are not for tokens.
TEST_F(ModelTest, TakesFiveHundredAndTwelveTokensOf514Rows) {
  WriteCheckpoint(CheckpointSpecOf("xlm_roberta"), folder_.path());
  const auto model = Load();
  ASSERT_THAT(model, IsOk());
  const IdLimits& limits = (*model)->info().limits;
  auto session = (*model)->NewSession({});
  ASSERT_THAT(session, IsOk());
  TokenSequence sequence;
  sequence.token_ids.assign(512, 7);
  ASSERT_THAT(ValidateSequence(sequence, limits), IsOk());
  PackedBatch batch;
  batch.Append(sequence, limits);
  EXPECT_EQ(batch.position_ids.front(), 2);
  EXPECT_EQ(batch.position_ids.back(), 513);
  const SequenceOutput output;
  ForwardResult result;
  EXPECT_THAT((*session)->Run(batch, {&output, 1}, &result), IsOk());

  sequence.token_ids.push_back(7);
  EXPECT_THAT(ValidateSequence(sequence, limits),
              IsError(kInvalidArgument,
                      "513 tokens; this model takes at most "
                      "512"));
  sequence.token_ids = {7, 7};
  sequence.position_ids = {0, 513};
  EXPECT_THAT(ValidateSequence(sequence, limits), IsOk());
  sequence.position_ids = {0, 514};
  EXPECT_THAT(ValidateSequence(sequence, limits),
              IsError(kInvalidArgument, "position id 514"));
}

TEST_F(ModelTest, RefusesAVocabularyLargerThanTheTokenTable) {
  spec_.vocab = 399;
  WriteWeights(CheckpointTensors(spec_), 1, folder_.path());
  std::ifstream file(folder_.Path("config.json"));
  nlohmann::json config = nlohmann::json::parse(file);
  config["vocab_size"] = 399;
  folder_.Write("config.json", config.dump());
  EXPECT_THAT(Load(), IsError(kDataLoss,
                              "ids for 400 tokens; the token table has 399"));
}

TEST_F(ModelTest, NotesRowsOfTheTokenTableWithoutAToken) {
  std::ifstream file(folder_.Path("vocab.txt"));
  std::string words((std::istreambuf_iterator<char>(file)), {});
  folder_.Write("vocab.txt", words + " \n");  // an entry that no text has
  EXPECT_THAT(Load(), IsOk());
  words.resize(words.size() - std::string("word322\n").size());
  folder_.Write("vocab.txt", words);
  const auto model = Load();
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT((*model)->info().notes,
              Contains(HasSubstr("1 of the token table's 400 rows")));
}

TEST_F(ModelTest, PassesOnTheErrorsOfEachStep) {
  EXPECT_THAT(Model::Load(folder_.Path("none"), {}),
              IsError(absl::StatusCode::kNotFound, "none"));
  EXPECT_THAT(Model::Load(folder_.path(), {.device = "abacus"}),
              testing::Not(IsOk()));
  std::vector<TensorToWrite> tensors = CheckpointTensors(spec_);
  tensors[0].bytes.replace(0, 4, FloatBytes({NAN}));
  WriteWeights(tensors, 1, folder_.path());
  EXPECT_THAT(Load(), IsError(kDataLoss, "has the value nan at index 0"));
}

}  // namespace
}  // namespace encoderd
