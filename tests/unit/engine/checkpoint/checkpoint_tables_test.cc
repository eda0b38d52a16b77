// The tables of the embedding block, which stay in the dtype of the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/model_config.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using testing::IsEmpty;

constexpr char kToken[] = "embeddings.word_embeddings.weight";

std::string& BytesOf(const std::string& name,
                     std::vector<TensorToWrite>* tensors) {
  for (TensorToWrite& tensor : *tensors) {
    if (tensor.name == name) return tensor.bytes;
  }
  ADD_FAILURE() << "no tensor " << name;
  return tensors->front().bytes;
}

absl::StatusOr<OuterWeights> ReadOuter(const TempFolder& folder) {
  const ModelConfig config = LoadModelConfig(folder.path(), 0).value();
  return CheckpointReader::Open(folder.path(), config).value()->ReadOuter();
}

TEST(CheckpointTablesTest, KeepTheDtypeOfTheFile) {
  for (const char* checkpoint : {"half_head80", "bfloat_head24"}) {
    const TempFolder folder;
    const CheckpointSpec spec = CheckpointSpecOf(checkpoint);
    std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
    WriteCheckpoint(spec, folder.path());
    const OuterWeights outer = ReadOuter(folder).value();
    const EmbeddingWeights& embeddings = outer.embeddings;
    const std::pair<const HostTable*, const char*> kTables[] = {
        {&embeddings.token, kToken},
        {&embeddings.position, "embeddings.position_embeddings.weight"},
        {&embeddings.segment, "embeddings.token_type_embeddings.weight"}};
    for (const auto& [table, name] : kTables) {
      EXPECT_EQ(table->dtype, spec.dtype == "F16" ? DType::kF16 : DType::kBF16);
      EXPECT_THAT(table->floats, IsEmpty());
      const std::string& bytes = BytesOf(spec.prefix + name, &tensors);
      ASSERT_EQ(table->halves.size() * 2, bytes.size()) << name;
      EXPECT_EQ(static_cast<size_t>(table->rows * table->cols),
                table->halves.size());
      EXPECT_EQ(std::memcmp(table->data(), bytes.data(), bytes.size()), 0);
    }
    EXPECT_EQ(embeddings.norm.gain.size(), static_cast<size_t>(spec.hidden));
  }
}

TEST(CheckpointTablesTest, NameAValueThatIsNotFinite) {
  const TempFolder folder;
  const CheckpointSpec spec = CheckpointSpecOf("bfloat_head24");
  WriteCheckpoint(spec, folder.path());
  std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
  BytesOf(spec.prefix + kToken, &tensors).replace(2 * 5, 2, "\x80\xff");
  WriteWeights(tensors, 1, folder.path());
  EXPECT_THAT(ReadOuter(folder), IsError(absl::StatusCode::kDataLoss,
                                         "has the value -inf at index 5"));
}

}  // namespace
}  // namespace encoderd
