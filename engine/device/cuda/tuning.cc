#include "engine/device/cuda/tuning.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/io/file.h"
#include "engine/io/sha256.h"
#include "engine/io/write_file.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr absl::string_view kFormat = "encoderd tuning 1";
constexpr absl::string_view kDigest = "sha256 ";
constexpr int64_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxAlgorithmBytes = 1024;

using Types = std::pair<Element, Operands>;
const std::vector<std::pair<Types, const char*>> kTypes = {
    {{Element::kFloat, Operands::kElement}, "fp32"},
    {{Element::kHalf, Operands::kElement}, "fp16"},
    {{Element::kBf16, Operands::kElement}, "bf16"},
    {{Element::kHalf, Operands::kE4m3}, "fp16_e4m3"},
    {{Element::kBf16, Operands::kE4m3}, "bf16_e4m3"}};
const std::vector<std::pair<Epilogue, const char*>> kEpilogues = {
    {Epilogue::kNone, "none"},
    {Epilogue::kBias, "bias"},
    {Epilogue::kBiasGeluTanh, "bias_gelu_tanh"},
    {Epilogue::kBiasRelu, "bias_relu"},
    {Epilogue::kBiasGeluErf, "bias_gelu"}};

template <typename T>
const char* NameOf(const std::vector<std::pair<T, const char*>>& names,
                   T value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "?";
}

template <typename T>
bool ValueOf(const std::vector<std::pair<T, const char*>>& names,
             absl::string_view name, T* value) {
  for (const auto& [known, known_name] : names) {
    if (name != known_name) continue;
    *value = known;
    return true;
  }
  return false;
}

// The lines before the choices.
std::string Header(const TunedFor& tuned_for) {
  return absl::StrCat(kFormat, "\ncard ", tuned_for.card, "\ncompute ",
                      tuned_for.compute_major, ".", tuned_for.compute_minor,
                      "\nlibrary ", tuned_for.library, "\n");
}

bool ParseLine(absl::string_view line, Choices* choices) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  Types types;
  Epilogue epilogue;
  int64_t in = 0, out = 0;
  if (words.size() != 5 || !ValueOf(kTypes, words[0], &types) ||
      !absl::SimpleAtoi(words[1], &in) || !absl::SimpleAtoi(words[2], &out) ||
      !ValueOf(kEpilogues, words[3], &epilogue) || words[4].size() % 2 != 0 ||
      words[4].empty() || words[4].size() / 2 > kMaxAlgorithmBytes)
    return false;
  for (const char c : words[4]) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
  }
  return choices
      ->emplace(ProductKey{types.first, in, out, epilogue, types.second},
                absl::HexStringToBytes(words[4]))
      .second;
}

const Algorithm* FindIn(const Choices& choices, const ProductKey& key) {
  const auto found = choices.find(key);
  return found == choices.end() ? nullptr : &found->second;
}

}  // namespace

ProductKey KeyOf(const ProductArgs& args) {
  return {args.element, args.in, args.out, args.epilogue, args.operands};
}

std::string KeyText(const ProductKey& key) {
  return absl::StrCat(NameOf(kTypes, Types(key.element, key.operands)), " ",
                      key.in, " ", key.out, " ",
                      NameOf(kEpilogues, key.epilogue));
}

TunedFor TunedForCard(const Card& card, std::string library) {
  return {card.name, card.compute_major, card.compute_minor,
          std::move(library)};
}

std::string TuningFileName(const TunedFor& tuned_for) {
  std::string name =
      absl::StrCat(tuned_for.card, "-", tuned_for.compute_major, ".",
                   tuned_for.compute_minor, "-", tuned_for.library);
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    c = absl::ascii_isalnum(byte) || c == '.' ? absl::ascii_tolower(byte) : '-';
  }
  return absl::StrCat(name, ".tuning");
}

std::string FormatTuning(const TunedFor& tuned_for, const Choices& choices) {
  std::string text = Header(tuned_for);
  for (const auto& [key, algorithm] : choices) {
    absl::StrAppend(&text, KeyText(key), " ", absl::BytesToHexString(algorithm),
                    "\n");
  }
  const absl::StatusOr<std::string> digest = Sha256OfString(text);
  return absl::StrCat(text, kDigest, digest.ok() ? *digest : "", "\n");
}

absl::StatusOr<Choices> ParseTuning(absl::string_view text,
                                    const TunedFor& tuned_for) {
  if (!absl::StartsWith(text, absl::StrCat(kFormat, "\n")))
    return absl::DataLossError(
        absl::StrCat("its first line is not \"", kFormat, "\""));
  const size_t end = text.rfind(kDigest);
  const absl::string_view lines = text.substr(0, end);
  const absl::StatusOr<std::string> digest = Sha256OfString(lines);
  if (!digest.ok()) return digest.status();
  if (end == text.npos ||
      text.substr(end) != absl::StrCat(kDigest, *digest, "\n"))
    return absl::DataLossError("it is damaged: its digest is of other content");
  absl::string_view rest = lines;
  if (!absl::ConsumePrefix(&rest, Header(tuned_for))) {
    return absl::DataLossError(
        absl::StrCat("it is not of ", tuned_for.card, ", compute capability ",
                     tuned_for.compute_major, ".", tuned_for.compute_minor,
                     " and ", tuned_for.library));
  }
  Choices choices;
  for (const absl::string_view line :
       absl::StrSplit(rest, '\n', absl::SkipEmpty())) {
    if (!ParseLine(line, &choices))
      return absl::DataLossError(
          absl::StrCat("a line is not understood: ", Quote(line)));
  }
  return choices;
}

TuningStore::TuningStore(std::string folder, TunedFor tuned_for)
    : folder_(std::move(folder)),
      tuned_for_(std::move(tuned_for)),
      name_(TuningFileName(tuned_for_)) {
  kept_ = Read(/*tell=*/true);
}

Choices TuningStore::Read(bool tell) {
  if (folder_.empty()) return {};
  const absl::StatusOr<std::string> text =
      ReadWholeFile(folder_, name_, kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return {};
  absl::StatusOr<Choices> choices =
      text.ok() ? ParseTuning(*text, tuned_for_) : text.status();
  if (choices.ok()) return *std::move(choices);
  if (tell) {
    AddNote(absl::StrCat("warning: ", folder_, "/", name_,
                         " is not used, algorithms are chosen anew: ",
                         choices.status().message()));
  }
  return {};
}

bool TuningStore::Change(const std::function<void(Choices*)>& change) {
  const absl::StatusOr<FileLock> lock =
      FileLock::Take(folder_, absl::StrCat(name_, ".lock"));
  absl::Status status = lock.status();
  if (status.ok()) {
    Choices all = kept_;
    for (const auto& [key, chosen] : Read(/*tell=*/false)) all[key] = chosen;
    change(&all);
    status = WriteFileAtomically(folder_, name_, FormatTuning(tuned_for_, all));
    if (status.ok()) kept_ = std::move(all);
  }
  writable_ = status.ok();
  if (status.ok()) return true;
  AddNote(absl::StrCat(
      "warning: ", folder_, "/", name_,
      " cannot be written: products that it has no algorithm for are not "
      "timed, the library's first choice is taken: ",
      status.message()));
  return false;
}

bool TuningStore::Timed() {
  if (folder_.empty()) return false;
  return writable_.has_value() ? *writable_ : Change([](Choices* all) {});
}

const Algorithm* TuningStore::Served(const ProductKey& key) const {
  return FindIn(served_, key);
}

const Algorithm* TuningStore::Kept(const ProductKey& key) const {
  return FindIn(kept_, key);
}

const Algorithm* TuningStore::Keep(const ProductKey& key,
                                   const Algorithm& algorithm,
                                   const Algorithm& refused) {
  const bool kept = Change([&](Choices* all) {
    const auto [choice, added] = all->emplace(key, algorithm);
    if (!added && choice->second == refused) choice->second = algorithm;
  });
  return kept ? Kept(key) : nullptr;
}

}  // namespace cuda
}  // namespace encoderd
