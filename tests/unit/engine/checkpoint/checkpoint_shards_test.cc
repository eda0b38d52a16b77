// A checkpoint of several files and an index.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint_files.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/model_config.h"
#include "engine/io/json.h"
#include "engine/io/sha256.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

class ShardedWeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    const CheckpointSpec spec = CheckpointSpecOf("odd_sizes");
    WriteCheckpoint(spec, folder_.path());
    whole_ = Open().value();  // keeps its file open
    std::filesystem::remove(folder_.Path("model.safetensors"));
    WriteWeights(CheckpointTensors(spec), 2, folder_.path());
  }

  absl::StatusOr<std::unique_ptr<CheckpointReader>> Open() {
    return CheckpointReader::Open(folder_.path(),
                                  LoadModelConfig(folder_.path(), 0).value());
  }

  void WriteIndex(const std::string& file) {
    folder_.Write("model.safetensors.index.json",
                  absl::StrCat("{\"weight_map\":{\"t\":\"", file, "\"}}"));
  }

  const TempFolder folder_;
  std::unique_ptr<CheckpointReader> whole_;  // of the same weights in one file
};

TEST_F(ShardedWeightsTest, ReadsTensorsOfAllShards) {
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ((*reader)->ReadOuter().value().embeddings.token.floats,
            whole_->ReadOuter().value().embeddings.token.floats);
  LayerWeights layer, expected;
  ASSERT_THAT((*reader)->ReadLayer(1, &layer), IsOk());
  ASSERT_THAT(whole_->ReadLayer(1, &expected), IsOk());
  EXPECT_EQ(layer.qkv.weight.data, expected.qkv.weight.data);
  EXPECT_EQ(layer.feed_forward_norm.bias, expected.feed_forward_norm.bias);
}

TEST_F(ShardedWeightsTest, TheDigestIsOfTheShardsDigests) {
  std::string digests;
  for (int shard : {1, 2}) {
    const auto file = File::Open(
        folder_.path(),
        absl::StrCat("model-0000", shard, "-of-00002.safetensors"), 1 << 30);
    ASSERT_THAT(file, IsOk());
    absl::StrAppend(&digests, shard == 1 ? "" : "\n",
                    Sha256OfFile(*file).value());
  }
  EXPECT_EQ(Open().value()->Sha256().value(), Sha256OfString(digests).value());
}

TEST_F(ShardedWeightsTest, RefusesAShardThatIsNotThere) {
  std::filesystem::remove(folder_.Path("model-00002-of-00002.safetensors"));
  EXPECT_THAT(Open(), IsError(absl::StatusCode::kNotFound, "model-00002"));
}

TEST_F(ShardedWeightsTest, RefusesShardsOutsideTheFolder) {
  for (const char* name : {"../x", "/etc/passwd", "a/../../x"}) {
    WriteIndex(name);
    EXPECT_THAT(Open(), IsError(kDataLoss, "not a name inside")) << name;
  }
  std::filesystem::create_symlink("/etc/passwd", folder_.Path("link"));
  WriteIndex("link");
  EXPECT_THAT(Open(), IsError(kDataLoss, "leads out of its folder"));
}

TEST_F(ShardedWeightsTest, RefusesAnIndexThatDoesNotFitItsShards) {
  WriteIndex("model-00001-of-00002.safetensors");
  EXPECT_THAT(Open(), IsError(kDataLoss, "lacks the tensor 't'"));
  folder_.Write("model.safetensors.index.json", "{}");
  EXPECT_THAT(Open(), IsError(kDataLoss, "weight_map is missing"));
  folder_.Write("model.safetensors.index.json", R"({"weight_map":{"t":1}})");
  EXPECT_THAT(Open(), IsError(kDataLoss, "expected a file name"));
}

// transformers would take the one of the last file.
TEST_F(ShardedWeightsTest, RefusesATensorThatTwoShardsHave) {
  const TempFolder folder;
  const auto write = [&](const std::string& file, const char* other) {
    folder.Write(file + ".safetensors",
                 SafetensorsBytes({FloatTensor(file, {1}, {1}),
                                   FloatTensor(other, {1}, {2})}));
  };
  folder.Write("model.safetensors.index.json",
               R"({"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})");
  write("a", "c");  // which the index does not name
  write("b", "d");
  const auto files = CheckpointFiles::Open(folder.path(), "");
  ASSERT_THAT(files, IsOk());
  EXPECT_EQ(files->tensors().count("c"), 1);
  write("b", "a");
  EXPECT_THAT(CheckpointFiles::Open(folder.path(), ""),
              IsError(kDataLoss,
                      "model.safetensors.index.json: the tensor 'a' is in "
                      "'a.safetensors' and in 'b.safetensors'; expected one"));
  write("b", "c");
  EXPECT_THAT(CheckpointFiles::Open(folder.path(), ""),
              IsError(kDataLoss, "the tensor 'c' is in "));
  write("a", "b");
  EXPECT_THAT(CheckpointFiles::Open(folder.path(), ""),
              IsError(kDataLoss, "'b.safetensors' and in 'a.safetensors'"));
}

// The process's limit of open files, raised until the end: each shard is one.
class ManyOpenFiles {
 public:
  explicit ManyOpenFiles(rlim_t files) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit raised = before_;
    raised.rlim_cur = std::max(raised.rlim_cur, files);
    allowed_ = raised.rlim_cur <= raised.rlim_max &&
               setrlimit(RLIMIT_NOFILE, &raised) == 0;
  }
  ~ManyOpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  ManyOpenFiles(const ManyOpenFiles&) = delete;
  ManyOpenFiles& operator=(const ManyOpenFiles&) = delete;

  bool allowed() const { return allowed_; }

 private:
  rlimit before_ = {};
  bool allowed_ = false;
};

TEST_F(ShardedWeightsTest, RefusesMoreThan1024Shards) {
  constexpr int kMost = 1024;
  const ManyOpenFiles open_files(2 * kMost);
  if (!open_files.allowed()) GTEST_SKIP() << "ulimit -Hn is too low";
  const TempFolder folder;
  Json index;
  for (int i = 0; i <= kMost; ++i) {
    const std::string name = absl::StrCat("t", i);
    const std::string file = absl::StrCat(name, ".safetensors");
    const std::vector<TensorToWrite> tensors = {FloatTensor(name, {1}, {0})};
    folder.Write(file, SafetensorsBytes(tensors));
    index["weight_map"][name] = file;
    if (i + 1 < kMost) continue;
    folder.Write("model.safetensors.index.json", index.dump());
    const auto files = CheckpointFiles::Open(folder.path(), "");
    if (i < kMost) {
      ASSERT_THAT(files, IsOk());
      EXPECT_EQ(files->tensors().size(), kMost);
    } else {
      EXPECT_THAT(files, IsError(kDataLoss,
                                 "model.safetensors.index.json names more than "
                                 "1024 files"));
    }
  }
}

// Which a manifest need not list.
TEST_F(ShardedWeightsTest, RefusesAShardOfAnotherName) {
  std::filesystem::rename(folder_.Path("model-00001-of-00002.safetensors"),
                          folder_.Path("weights.bin"));
  WriteIndex("weights.bin");
  EXPECT_THAT(Open(), IsError(kDataLoss,
                              "the tensor 't' is in 'weights.bin'; expected a "
                              ".safetensors file"));
}

}  // namespace
}  // namespace encoderd
