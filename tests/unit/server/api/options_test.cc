#include "server/api/options.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace encoderd {
namespace {

ModelConfig WithPrompts(const std::string& default_name) {
  ModelConfig config;
  config.prompts = {{"query", "q: "}, {"passage", "p: "}, {"plain", ""}};
  config.default_prompt_name = default_name;
  return config;
}

TEST(OptionsTest, AskedForNoPromptAModelUsesItsDefaultOne) {
  EXPECT_EQ(*FindPrompt("f", WithPrompts("query"), ""), "q: ");
  EXPECT_EQ(*FindPrompt("f", WithPrompts("plain"), ""), "");
  EXPECT_EQ(*FindPrompt("f", WithPrompts(""), ""), "");
}

TEST(OptionsTest, APromptAskedForReplacesTheDefaultOne) {
  EXPECT_EQ(*FindPrompt("f", WithPrompts("query"), "passage"), "p: ");
  EXPECT_EQ(*FindPrompt("f", WithPrompts("query"), "plain"), "");
}

TEST(OptionsTest, AnUnknownPromptNamesThoseThatThereAre) {
  const auto prompt = FindPrompt("f", WithPrompts("query"), "nope");
  EXPECT_EQ(prompt.status().code(), absl::StatusCode::kNotFound);
  const auto detail = GetErrorDetail(prompt.status());
  EXPECT_EQ(detail->reason, "PROMPT_NOT_FOUND");
  EXPECT_EQ(detail->metadata.at("available"), "passage, plain, query");
  EXPECT_EQ(detail->field, "f");
}

}  // namespace
}  // namespace encoderd
