#include "engine/checkpoint/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
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

TEST_F(LayersTest, ANullThetaOfWindowsIsThatOfTheOtherLayers) {
  ASSERT_THAT(Read({{"global_theta", 5000}, {"local_theta", nullptr}}), IsOk());
  EXPECT_EQ(config_.rotations[1].theta, 5000);
  const Json rope = {{"sliding_attention", {{"rope_theta", nullptr}}}};
  EXPECT_THAT(Read({{"rope_parameters", rope}}),
              IsError(kDataLoss,
                      "rope_parameters.sliding_attention: rope_theta is null"));
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
  const Json old = {{"sliding_attention", {{"type", "linear"}}}};
  EXPECT_THAT(Read({{"rope_parameters", old}}),
              IsError(kUnimplemented,
                      "rope_parameters.sliding_attention: type 'linear'"));
  EXPECT_THAT(
      Read({{"rope_parameters", {{"full_attention", {{"type", "default"}}}}}}),
      IsOk());
  // transformers fails at null, but reads the older name only without the
  // other.
  for (const char* key : {"rope_type", "type"}) {
    const Json null = {{"sliding_attention", {{key, nullptr}}}};
    EXPECT_THAT(
        Read({{"rope_parameters", null}}),
        IsError(kUnimplemented,
                absl::StrCat("rope_parameters.sliding_attention: ", key,
                             " null is not supported; supported: default")));
  }
  const Json both = {
      {"full_attention", {{"rope_type", "default"}, {"type", nullptr}}}};
  EXPECT_THAT(Read({{"rope_parameters", both}}), IsOk());
  const Json partial = {{"full_attention", {{"partial_rotary_factor", 0.5}}}};
  EXPECT_THAT(Read({{"rope_parameters", partial}}),
              IsError(kUnimplemented,
                      "config.json, rope_parameters.full_attention: "
                      "partial_rotary_factor 0.5 is not supported; supported: "
                      "1.0"));
  EXPECT_THAT(Read({{"rope_parameters", {{"rope_theta", 1e6}}}}),
              IsError(kUnimplemented,
                      "config.json, rope_parameters: rope_theta 1000000.0 is "
                      "not supported; supported: full_attention, "
                      "sliding_attention"));
  EXPECT_THAT(Read({{"rope_scaling", {{"type", "linear"}}}}),
              IsError(kUnimplemented,
                      "config.json, rope_scaling: type 'linear' is not "
                      "supported; supported: default"));
  EXPECT_THAT(Read({{"rope_scaling", {{"rope_theta", 5.0}}}}),
              IsError(kUnimplemented, "rope_scaling: rope_theta 5.0"));
  EXPECT_THAT(Read({{"rope_scaling", 2}}),
              IsError(kDataLoss, "rope_scaling is 2; expected an object"));
  const Json types = {"full_attention", "chunked_attention", "full_attention",
                      "full_attention", "full_attention"};
  EXPECT_THAT(Read({{"layer_types", types}}),
              IsError(kUnimplemented,
                      "config.json: layer_types[1] 'chunked_attention' is not "
                      "supported; supported: full_attention, "
                      "sliding_attention"));
  config_.hidden_size = 14;
  EXPECT_THAT(Read(Json::object()), IsError(kUnimplemented, "not of 7"));
}

TEST_F(LayersTest, ServesParametersOfRotationsThatChangeNothing) {
  const Json nothing = {{"type", "default"}, {"partial_rotary_factor", 1}};
  for (const Json& scaling :
       {Json(), Json::object(), Json{{"rope_type", "default"}}, nothing}) {
    EXPECT_THAT(Read({{"rope_scaling", scaling}}), IsOk()) << scaling;
  }
  for (const Json& share : {Json(1.0), Json(1), Json()}) {
    const Json rope = {{"full_attention", {{"partial_rotary_factor", share}}}};
    EXPECT_THAT(Read({{"rope_parameters", rope}}), IsOk()) << share;
  }
  EXPECT_THAT(Read({{"rope_parameters", Json::object()}}), IsOk());
  EXPECT_THAT(config_.rotations,
              ElementsAre(Rotation{160000, 6}, Rotation{10000, 6}));
}

TEST_F(LayersTest, NamesBadValues) {
  EXPECT_THAT(Read({{"layer_types", {"full_attention"}}}),
              IsError(kDataLoss, "expected a list of 5"));
  for (const Json& every : {Json(0), Json(-3), Json(1.5), Json("3")}) {
    EXPECT_THAT(Read({{"every", every}}),
                IsError(kDataLoss,
                        absl::StrCat("config.json: every is ", ShowJson(every),
                                     "; expected a whole number from 1 "
                                     "to 1048576")));
  }
  for (const Json& local :
       {Json(0), Json(-2), Json(1e18), Json(int64_t{1} << 40), Json("128")}) {
    EXPECT_THAT(Read({{"local", local}}),
                IsError(kDataLoss,
                        absl::StrCat("config.json: local is ", ShowJson(local),
                                     "; expected a "
                                     "whole number from 1 to ")));
  }
  for (const Json& theta : {Json(0), Json(-1), Json(0.5), Json(1e300),
                            Json("10000"), Json(true), Json::array({1e4})}) {
    for (const char* key : {"global_theta", "local_theta"}) {
      EXPECT_THAT(
          Read({{key, theta}}),
          IsError(kDataLoss,
                  absl::StrCat("config.json: ", key, " is ", ShowJson(theta),
                               "; expected a number from 1 to "
                               "1e+30")));
    }
    const Json rope = {{"full_attention", {{"rope_theta", theta}}}};
    EXPECT_THAT(
        Read({{"rope_parameters", rope}}),
        IsError(kDataLoss, "rope_parameters.full_attention: rope_theta is "));
  }
  EXPECT_THAT(Read({{"rope_parameters", 7}}), IsError(kDataLoss, "an object"));
  EXPECT_THAT(Read({{"rope_parameters", {{"full_attention", 7}}}}),
              IsError(kDataLoss, "expected objects by kind of layer"));
  for (const char* key : {"rope_type", "type"}) {
    const Json rope = {{"sliding_attention", {{key, 7}}}};
    EXPECT_THAT(Read({{"rope_parameters", rope}}),
                IsError(kDataLoss,
                        absl::StrCat("rope_parameters.sliding_attention: ", key,
                                     " is 7; expected a string")));
  }
  EXPECT_THAT(Read({{"layer_types", "full_attention"}}),
              IsError(kDataLoss, "expected a list of 5"));
  EXPECT_THAT(Read({{"head_dim", 4}}),
              IsError(kDataLoss,
                      "head_dim is 4; expected the hidden size by "
                      "heads, 6"));
  EXPECT_THAT(Read({{"head_dim", 6}}), IsOk());
}

// A window that reaches past every text is one that sees all, by its own theta.
TEST_F(LayersTest, WindowsMayBeOfOneTokenOrWiderThanAnyText) {
  ASSERT_THAT(Read({{"local", 1}}), IsOk());
  EXPECT_THAT(Reaches(), ElementsAre(-1, 0, 0, -1, 0));
  ASSERT_THAT(Read({{"local", 1 << 28}}), IsOk());
  EXPECT_THAT(Reaches(), ElementsAre(-1, 1 << 27, 1 << 27, -1, 1 << 27));
  ASSERT_THAT(Read({{"every", 1 << 20}}), IsOk());
  EXPECT_THAT(Reaches(), ElementsAre(-1, 8, 8, 8, 8));
}

}  // namespace
}  // namespace encoderd
