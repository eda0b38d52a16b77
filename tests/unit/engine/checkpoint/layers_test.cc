#include "engine/checkpoint/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using testing::ElementsAre;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

class LayersTest : public testing::Test {
 protected:
  LayersTest() {
    architecture_.keys = {{"num_attention_heads", "heads"},
                          {"full_attention_period", "every"},
                          {"window", "local"},
                          {"full_theta", "global_theta"},
                          {"window_theta", "local_theta"}};
    architecture_.defaults = {{"full_attention_period", 3},
                              {"window", 16},
                              {"full_theta", 160000.0},
                              {"window_theta", 10000.0}};
    config_.num_hidden_layers = 5;
    config_.hidden_size = 12;
    config_.num_attention_heads = 2;
    config_.position_scheme = &RotaryPositions();
  }

  absl::Status Read(const Json& json) {
    const JsonFields fields(json, "config.json");
    return ReadLayers(Settings(fields, architecture_), &config_);
  }
  std::vector<int32_t> Reaches() const {
    std::vector<int32_t> left;
    for (const LayerSpec& layer : config_.layers) {
      EXPECT_EQ(layer.reach.left, layer.reach.right);
      EXPECT_EQ(layer.rotation, layer.reach.left < 0 ? 0 : 1);
      left.push_back(layer.reach.left);
    }
    return left;
  }

  Architecture architecture_;
  ModelConfig config_;
};

TEST_F(LayersTest, LayersByTurnsSeeAllAndHalfAWindowToEachSide) {
  ASSERT_THAT(Read(Json::object()), IsOk());
  EXPECT_THAT(Reaches(), ElementsAre(-1, 8, 8, -1, 8));
  EXPECT_THAT(config_.rotations,
              ElementsAre(Rotation{160000, 6}, Rotation{10000, 6}));
  ASSERT_THAT(Read({{"every", 2}, {"local", 5}, {"local_theta", 500}}), IsOk());
  EXPECT_THAT(Reaches(), ElementsAre(-1, 2, -1, 2, -1));
  EXPECT_EQ(config_.rotations[1].theta, 500);
}

TEST_F(LayersTest, ListsOfLayersAndRotationsGoFirst) {
  const char* full = "full_attention";
  const char* window = "sliding_attention";
  ASSERT_THAT(
      Read({{"every", 2},
            {"layer_types", {window, full, full, window, full}},
            {"local_theta", 7},
            {"rope_parameters",
             {{full, {{"rope_type", "default"}, {"rope_theta", 90000.0}}}}}}),
      IsOk());
  EXPECT_THAT(Reaches(), ElementsAre(8, -1, -1, 8, -1));
  EXPECT_THAT(config_.rotations,
              ElementsAre(Rotation{90000, 6}, Rotation{7, 6}));
}

TEST_F(LayersTest, ACausalMaskHidesWhatComesAfter) {
  architecture_.keys.erase("window");
  architecture_.causal = true;
  config_.position_scheme = &LearnedPositions();
  ASSERT_THAT(Read(Json::object()), IsOk());
  ASSERT_EQ(config_.layers.size(), 5u);
  for (const LayerSpec& layer : config_.layers) {
    EXPECT_EQ(layer.reach, (Reach{-1, 0}));
    EXPECT_EQ(layer.rotation, -1);
  }
  EXPECT_TRUE(config_.rotations.empty());
}

TEST_F(LayersTest, RefusesByNameWhatIsNotServed) {
  const Json yarn = {{"full_attention", {{"rope_type", "yarn"}}}};
  EXPECT_THAT(Read({{"rope_parameters", yarn}}),
              IsError(kUnimplemented, "rope_type 'yarn'"));
  EXPECT_THAT(Read({{"rope_parameters", {{"rope_theta", 1e6}}}}),
              IsError(kUnimplemented, "rope_parameters"));
  EXPECT_THAT(Read({{"rope_scaling", {{"type", "linear"}}}}),
              IsError(kUnimplemented, "rope_scaling"));
  const Json types = {"full_attention", "chunked_attention", "full_attention",
                      "full_attention", "full_attention"};
  EXPECT_THAT(Read({{"layer_types", types}}),
              IsError(kUnimplemented, "layer_types"));
  config_.hidden_size = 14;
  EXPECT_THAT(Read(Json::object()), IsError(kUnimplemented, "not of 7"));
}

TEST_F(LayersTest, NamesBadValues) {
  EXPECT_THAT(Read({{"layer_types", {"full_attention"}}}),
              IsError(kDataLoss, "want a list of 5"));
  EXPECT_THAT(Read({{"every", 0}}), IsError(kDataLoss, "every is 0"));
  EXPECT_THAT(Read({{"local_theta", -1}}), IsError(kDataLoss, "local_theta"));
  EXPECT_THAT(Read({{"rope_parameters", 7}}), IsError(kDataLoss, "an object"));
}

}  // namespace
}  // namespace encoderd
