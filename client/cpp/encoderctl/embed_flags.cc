#include "client/cpp/encoderctl/embed_flags.h"

namespace encoderd::ctl {
namespace {

v1::Pooling ToPooling(const std::string& name) {
  if (name == "cls") return v1::POOLING_CLS;
  if (name == "mean") return v1::POOLING_MEAN;
  if (name == "max") return v1::POOLING_MAX;
  if (name == "mean_sqrt_len") return v1::POOLING_MEAN_SQRT_LEN;
  if (name == "weighted_mean") return v1::POOLING_WEIGHTED_MEAN;
  if (name == "last_token") return v1::POOLING_LAST_TOKEN;
  return v1::POOLING_UNSPECIFIED;
}

}  // namespace

void EmbedFlags::Add(Invocation* invocation) {
  invocation->AddTruncateFlag();
  Flags& flags = invocation->flags;
  flags.AddInt("windows", "N",
               "split a text that is too long into windows that overlap by N "
               "tokens, and average their vectors; -1: no windows",
               -1, 1 << 20, &windows_);
  flags.AddChoice("normalize",
                  "scale vectors to length 1; model: if the model does",
                  {"model", "yes", "no"}, &normalize_);
  flags.AddChoice("pooling",
                  "how to pool token states; model: as the model does",
                  {"model", "cls", "mean", "max", "mean_sqrt_len",
                   "weighted_mean", "last_token"},
                  &pooling_);
  flags.AddInt("dimensions", "N",
               "keep the first N values of each vector, and normalize it again "
               "if the full vector is normalized; 0: all",
               0, 1 << 20, &dimensions_);
  flags.AddString("prompt_name", "NAME",
                  "name of a model's prompt to put before each text",
                  &prompt_name_);
}

absl::Status EmbedFlags::Check(const Invocation& invocation) const {
  if (windows_ < 0 || invocation.settings.truncate == "none") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--windows and --truncate are both given; a long text is either computed "
      "in windows or cut: drop one");
}

client::EmbedOptions EmbedFlags::ToOptions(const Invocation& invocation) const {
  client::EmbedOptions options;
  options.model = invocation.settings.model;
  options.pooling = ToPooling(pooling_);
  if (normalize_ != "model") options.normalize = normalize_ == "yes";
  options.dimensions = static_cast<uint32_t>(dimensions_);
  options.truncate = invocation.truncate();
  options.prompt_name = prompt_name_;
  if (windows_ >= 0) options.windows = static_cast<uint32_t>(windows_);
  return options;
}

}  // namespace encoderd::ctl
