#include "engine/device/device_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace encoderd {
namespace {

// "cuda:N"; digits only.
bool ParseCard(absl::string_view word, int32_t* card) {
  return absl::ConsumePrefix(&word, "cuda:") &&
         std::all_of(word.begin(), word.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(word, card);
}

}  // namespace

std::optional<DeviceChoice> ParseDevice(absl::string_view words) {
  using Kind = DeviceChoice::Kind;
  if (words == "auto") return DeviceChoice{Kind::kAuto, {}, {}};
  if (words == "cpu") return DeviceChoice{Kind::kCpu, {}, {}};
  if (absl::ConsumePrefix(&words, "cpu:")) {
    for (const cpu::Isa isa : cpu::kIsas) {
      if (words == cpu::IsaName(isa)) return DeviceChoice{Kind::kCpu, {}, isa};
    }
    return std::nullopt;
  }
  if (words == "cuda") return DeviceChoice{Kind::kCards, {0}, {}};
  if (words == "cuda:all") return DeviceChoice{Kind::kCards, {}, {}};
  DeviceChoice choice{Kind::kCards, {}, {}};
  for (const absl::string_view word : absl::StrSplit(words, ',')) {
    int32_t card = 0;
    if (!ParseCard(word, &card)) return std::nullopt;
    choice.cards.push_back(card);
  }
  return choice;
}

}  // namespace encoderd
