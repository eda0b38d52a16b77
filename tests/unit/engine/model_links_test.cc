// A model folder whose files are links.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "engine/model.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// A model whose transformer is in 0_Transformer, all links.
class ModelLinksTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteCheckpoint(CheckpointSpecOf("positions100"), folder_.Path("model"));
    folder_.Write("model/modules.json", R"([
        {"type":"sentence_transformers.models.Transformer",
         "path":"0_Transformer"},
        {"type":"sentence_transformers.models.Pooling","path":"1_Pooling"}])");
    std::filesystem::create_directory(folder_.Path("model/0_Transformer"));
    for (const char* name : {"config.json", "model.safetensors", "vocab.txt",
                             "tokenizer_config.json"})
      Link(name, std::string("../") + name);
  }

  void Link(const std::string& name, const std::string& target) {
    const std::string link = folder_.Path("model/0_Transformer/" + name);
    std::filesystem::remove(link);
    std::filesystem::create_symlink(target, link);
  }

  absl::Status Load() {
    return Model::Load(folder_.Path("model"), {.device = "cpu"}).status();
  }

  const TempFolder folder_;
};

TEST_F(ModelLinksTest, LinksOfTheTransformersFolderMayLeadToTheModelFolder) {
  EXPECT_THAT(Load(), IsOk());
}

TEST_F(ModelLinksTest, NoLinkMayLeadOutOfTheModelFolder) {
  for (const std::string name : {"config.json", "model.safetensors",
                                 "vocab.txt", "tokenizer_config.json"}) {
    std::filesystem::copy_file(folder_.Path("model/" + name),
                               folder_.Path(name));
    Link(name, "../../" + name);
    EXPECT_THAT(Load(), IsError(kDataLoss, name + "' leads out of its folder"));
    Link(name, "../" + name);
  }
}

}  // namespace
}  // namespace encoderd
