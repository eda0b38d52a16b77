// The size of weights, by the files of a model folder.
#include "server/weight_files.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

std::string Bytes(size_t count) { return std::string(count, 'x'); }

TEST(WeightFilesTest, OneFileCountsAloneAndShardsTogether) {
  const TempFolder folder;
  folder.Write("config.json", Bytes(1));
  folder.Write("model.safetensors.index.json", Bytes(2));
  folder.Write("model-00001-of-00002.safetensors", Bytes(100));
  folder.Write("model-00002-of-00002.safetensors", Bytes(20));
  folder.Write("other.safetensors", Bytes(4));
  EXPECT_EQ(WeightFileBytes(folder.path()), 120);
  folder.Write("model.safetensors", Bytes(1000));
  EXPECT_EQ(WeightFileBytes(folder.path()), 1000);
}

TEST(WeightFilesTest, TheFolderOfATransformerModuleIsSearched) {
  const TempFolder folder;
  folder.Write("2_Dense/model.safetensors", Bytes(5));
  EXPECT_EQ(WeightFileBytes(folder.path()), 0);
  folder.Write("0_BERT/model.safetensors", Bytes(100));
  EXPECT_EQ(WeightFileBytes(folder.path()), 100);
}

TEST(WeightFilesTest, WhatCannotBeSeenIsZero) {
  const TempFolder folder;
  EXPECT_EQ(WeightFileBytes(folder.Path("none")), 0);
  folder.Write("file", Bytes(3));
  EXPECT_EQ(WeightFileBytes(folder.Path("file")), 0);
  folder.Write("model.safetensors/in_a_folder", Bytes(3));
  EXPECT_EQ(WeightFileBytes(folder.path()), 0);
}

}  // namespace
}  // namespace encoderd
