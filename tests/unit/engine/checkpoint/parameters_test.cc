#include "engine/checkpoint/parameters.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/checkpoint/architecture.h"
#include "engine/checkpoint/positions.h"

namespace encoderd {
namespace {

// The shapes of BERT-base with tables of these sizes.
ModelConfig Shapes(int32_t vocabulary, int32_t positions, int32_t hidden) {
  ModelConfig config;
  config.tensors = FindArchitecture("bert")->tensors;
  config.num_hidden_layers = 12;
  config.hidden_size = hidden;
  config.num_attention_heads = 12;
  config.intermediate_size = 4 * hidden;
  config.vocab_size = vocabulary;
  config.max_position_embeddings = positions;
  config.type_vocab_size = 2;
  return config;
}

TEST(ParametersTest, PositionTablesHaveTheFiguresOfTheTextbooks) {
  const auto positions = [](int32_t rows, int32_t hidden) {
    return CountParameters(Shapes(30522, rows, hidden)).position_table;
  };
  EXPECT_EQ(positions(512, 768), 393'216);      // BERT-base
  EXPECT_EQ(positions(1024, 768), 786'432);     // GPT-2 small
  EXPECT_EQ(positions(1024, 1024), 1'048'576);  // GPT-2 medium
  EXPECT_EQ(positions(1024, 1280), 1'310'720);  // GPT-2 large
}

TEST(ParametersTest, TokensAndPositionsTogetherAreTheFigureOfTheTextbooks) {
  const ParameterCounts counts = CountParameters(Shapes(30000, 512, 768));
  EXPECT_EQ(counts.token_table, 23'040'000);
  EXPECT_EQ(counts.token_table + counts.position_table, 23'433'216);
}

// As published: 109,482,240 with the pooler, which no output needs.
TEST(ParametersTest, BertBaseIsCountedInFull) {
  const ParameterCounts counts = CountParameters(Shapes(30522, 512, 768));
  EXPECT_EQ(counts.segment_table, 1536);
  EXPECT_EQ(counts.embedding, 23'837'184);
  ASSERT_EQ(counts.layers.size(), 12u);
  for (int64_t layer : counts.layers) EXPECT_EQ(layer, 7'087'872);
  EXPECT_EQ(counts.head, 0);
  EXPECT_EQ(counts.total, 109'482'240 - (768 * 768 + 768));
}

TEST(ParametersTest, WhatLayersShareIsCountedWhereItFirstRuns) {
  ModelConfig config = Shapes(30000, 512, 768);
  config.tensors = FindArchitecture("albert")->tensors;
  config.embedding_size = 128;
  config.layer_weights = std::vector<int32_t>(12, 0);
  ParameterCounts counts = CountParameters(config);
  EXPECT_EQ(counts.token_table, 30000 * 128);
  EXPECT_EQ(counts.position_table, 512 * 128);
  EXPECT_EQ(counts.segment_table, 2 * 128);
  EXPECT_EQ(counts.layers.front(), 7'087'872);
  EXPECT_EQ(std::accumulate(counts.layers.begin() + 1, counts.layers.end(), 0),
            0);
  // ALBERT-base as published: 11,683,584 with the pooler.
  EXPECT_EQ(counts.total, 11'683'584 - (768 * 768 + 768));
  config.layer_weights = {0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5};
  counts = CountParameters(config);
  EXPECT_EQ(counts.layers[1], 7'087'872);
  EXPECT_EQ(counts.layers[2], 0);
  EXPECT_EQ(counts.layers[9], 7'087'872);
  EXPECT_EQ(counts.layers[11], 0);
}

TEST(ParametersTest, GeneratedRowsAreNoParameters) {
  ModelConfig config = Shapes(30522, 512, 768);
  const int64_t learned = CountParameters(config).total;
  config.position_scheme = &SinusoidalPositions();
  const ParameterCounts counts = CountParameters(config);
  EXPECT_EQ(counts.position_table, 0);
  EXPECT_EQ(counts.total, learned - 393'216);
}

TEST(ParametersTest, TheTotalIsTheSumOfItsParts) {
  const ParameterCounts counts = CountParameters(Shapes(100, 64, 48));
  EXPECT_EQ(counts.total,
            std::accumulate(counts.layers.begin(), counts.layers.end(),
                            counts.embedding + counts.head));
}

}  // namespace
}  // namespace encoderd
