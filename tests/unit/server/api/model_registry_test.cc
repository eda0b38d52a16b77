#include "server/api/model_registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace encoderd {
namespace {

std::unique_ptr<ServedModel> Named(const std::string& name) {
  auto model = std::make_unique<ServedModel>();
  model->name = name;
  return model;
}

TEST(ModelRegistryTest, FindsByNameAndTheFirstOneWithoutAName) {
  ModelRegistry models;
  models.Add(Named("small"));
  models.Add(Named("large"));
  EXPECT_EQ((*models.Find("large"))->name, "large");
  EXPECT_EQ((*models.Find("small"))->name, "small");
  EXPECT_EQ((*models.Find(""))->name, "small");
}

TEST(ModelRegistryTest, AnUnknownNameNamesThoseThatThereAre) {
  ModelRegistry models;
  models.Add(Named("small"));
  models.Add(Named("large"));
  const absl::Status status = models.Find("huge\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no model 'huge\\n'; available: large, small");
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(detail->field, "model");
  EXPECT_EQ(detail->metadata.at("model"), "huge\\n");
  EXPECT_EQ(detail->metadata.at("available"), "large, small");
}

TEST(ModelRegistryTest, WithoutModelsNothingIsTheDefault) {
  EXPECT_EQ(ModelRegistry().Find("").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ModelRegistryTest, ListsTheDefaultFirstThenTheOthersByName) {
  ModelRegistry models;
  models.Add(Named("m"));
  models.Add(Named("z"));
  models.Add(Named("a"));
  std::string names;
  for (const ServedModel* model : models.All()) names += model->name;
  EXPECT_EQ(names, "maz");
}

}  // namespace
}  // namespace encoderd
