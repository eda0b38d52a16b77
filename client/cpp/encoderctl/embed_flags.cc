#include "client/cpp/encoderctl/embed_flags.h"

namespace encoderd::ctl {

void EmbedFlags::Add(Invocation* invocation) {
  invocation->AddTruncateFlag();
  Flags& flags = invocation->flags;
  flags.AddInt("windows", "N",
               "split a text that is too long into windows that overlap by N "
               "tokens, and average their vectors; -1: no windows",
               -1, 1 << 20, &windows_);
  flags.AddChoice(
      "normalize", "scale vectors to length 1; model: if the model does",
      {{"model", std::nullopt}, {"yes", true}, {"no", false}}, &normalize_);
  flags.AddChoice("pooling",
                  "how to pool token states; model: as the model does",
                  {{"model", v1::POOLING_UNSPECIFIED},
                   {"cls", v1::POOLING_CLS},
                   {"mean", v1::POOLING_MEAN},
                   {"max", v1::POOLING_MAX},
                   {"mean_sqrt_len", v1::POOLING_MEAN_SQRT_LEN},
                   {"weighted_mean", v1::POOLING_WEIGHTED_MEAN},
                   {"last_token", v1::POOLING_LAST_TOKEN}},
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
  if (windows_ < 0 || invocation.settings.truncate == v1::TRUNCATE_NONE) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--windows and --truncate are both given; a long text is either computed "
      "in windows or cut: drop one");
}

client::EmbedOptions EmbedFlags::ToOptions(const Invocation& invocation) const {
  client::EmbedOptions options;
  options.model = invocation.settings.model;
  options.pooling = pooling_;
  options.normalize = normalize_;
  options.dimensions = static_cast<uint32_t>(dimensions_);
  options.truncate = invocation.settings.truncate;
  options.prompt_name = prompt_name_;
  if (windows_ >= 0) options.windows = static_cast<uint32_t>(windows_);
  return options;
}

}  // namespace encoderd::ctl
