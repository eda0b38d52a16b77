// The size of weights, by the headers of their files.
#include "engine/checkpoint/weight_bytes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/random_checkpoint.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

// A file with one tensor of 4 x `values` bytes.
std::string OneTensor(const std::string& tensor, int64_t values) {
  return SafetensorsBytes(
      {FloatTensor(tensor, {values}, std::vector<float>(values))});
}

int64_t BytesOf(const std::vector<TensorToWrite>& tensors) {
  int64_t bytes = 0;
  for (const TensorToWrite& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return bytes;
}

TEST(WeightBytesTest, OneFileAndItsShardsAreAsLarge) {
  const TempFolder folder;
  const CheckpointSpec spec = CheckpointSpecOf("odd_sizes");
  const std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
  WriteCheckpoint(spec, folder.path());
  EXPECT_EQ(WeightBytes(folder.path()), BytesOf(tensors));
  std::filesystem::remove(folder.Path("model.safetensors"));
  WriteWeights(tensors, 2, folder.path());
  EXPECT_EQ(WeightBytes(folder.path()), BytesOf(tensors));
}

TEST(WeightBytesTest, OnlyTheFilesThatTheIndexNamesCount) {
  const TempFolder folder;
  folder.Write("model.safetensors.index.json",
               R"({"weight_map":{"t":"model-1.safetensors"}})");
  folder.Write("model-1.safetensors",
               SafetensorsBytes({FloatTensor("t", {2}, {1, 2}),
                                 FloatTensor("unnamed", {1}, {3})}));
  folder.Write("model-2.safetensors", OneTensor("t", 100));
  EXPECT_EQ(WeightBytes(folder.path()), 12);
  // As in a load, which does not look at the index then.
  folder.Write("model.safetensors", OneTensor("t", 1000));
  EXPECT_EQ(WeightBytes(folder.path()), 4000);
}

TEST(WeightBytesTest, TheFoldersOfModulesAreThoseOfModulesJson) {
  const TempFolder folder;
  folder.Write("model.safetensors", OneTensor("t", 7));
  folder.Write("0_BERT/model.safetensors", OneTensor("t", 70));
  folder.Write("words/model.safetensors", OneTensor("t", 700));
  folder.Write("2_Dense/model.safetensors", OneTensor("t", 1000));
  EXPECT_EQ(WeightBytes(folder.path()), 28);
  folder.Write("1_Pooling/config.json", R"({"pooling_mode":"mean"})");
  folder.Write("2_Dense/config.json", R"({"in_features":4,"out_features":2})");
  folder.Write("modules.json", R"([
    {"path":"words","type":"sentence_transformers.models.Transformer"},
    {"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
    {"path":"","type":"sentence_transformers.models.Normalize"},
    {"path":"2_Dense","type":"sentence_transformers.models.Dense"}])");
  EXPECT_EQ(WeightBytes(folder.path()), 6800);
  std::filesystem::remove(folder.Path("2_Dense/model.safetensors"));
  EXPECT_EQ(WeightBytes(folder.path()), 0);
}

TEST(WeightBytesTest, WhatCannotBeReadIsZero) {
  const TempFolder folder;
  EXPECT_EQ(WeightBytes(folder.Path("none")), 0);
  folder.Write("file", OneTensor("t", 1));
  EXPECT_EQ(WeightBytes(folder.Path("file")), 0);
  folder.Write("pytorch_model.bin", std::string(100, 'x'));
  EXPECT_EQ(WeightBytes(folder.path()), 0);
  folder.Write("model.safetensors", std::string(100, 'x'));
  EXPECT_EQ(WeightBytes(folder.path()), 0);
  folder.Write("model.safetensors", OneTensor("t", 1));
  EXPECT_EQ(WeightBytes(folder.path()), 4);
  folder.Write("modules.json", "{");
  EXPECT_EQ(WeightBytes(folder.path()), 0);
}

}  // namespace
}  // namespace encoderd
