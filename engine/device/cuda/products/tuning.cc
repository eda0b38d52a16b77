#include "engine/device/cuda/products/tuning.h"

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

constexpr absl::string_view kFormat = "encoderd tuning 3";
constexpr absl::string_view kDigest = "sha256 ";
constexpr absl::string_view kResidual = "+residual";
constexpr int64_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxAlgorithmBytes = 1024;

using Types = std::pair<DType, Operands>;
const std::vector<std::pair<Types, const char*>> kTypes = {
    {{DType::kF32, Operands::kElement}, "fp32"},
    {{DType::kF16, Operands::kElement}, "fp16"},
    {{DType::kBF16, Operands::kElement}, "bf16"},
    {{DType::kF16, Operands::kE4m3}, "fp16_e4m3"},
    {{DType::kBF16, Operands::kE4m3}, "bf16_e4m3"}};
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
  int64_t in = 0, out = 0, rows = 0;
  if (words.size() != 6) return false;
  absl::string_view result = words[3];
  const bool residual = absl::ConsumeSuffix(&result, kResidual);
  if (!ValueOf(kTypes, words[0], &types) || !absl::SimpleAtoi(words[1], &in) ||
      !absl::SimpleAtoi(words[2], &out) ||
      !ValueOf(kEpilogues, result, &epilogue) ||
      !absl::SimpleAtoi(words[4], &rows) || words[5].size() % 2 != 0 ||
      words[5].empty() || words[5].size() / 2 > kMaxAlgorithmBytes)
    return false;
  for (const char c : words[5]) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
  }
  return choices
      ->emplace(ProductKey{types.first, in, out, epilogue, types.second, rows,
                           residual},
                absl::HexStringToBytes(words[5]))
      .second;
}

const Algorithm* FindIn(const Choices& choices, const ProductKey& key) {
  const auto found = choices.find(key);
  return found == choices.end() ? nullptr : &found->second;
}

}  // namespace

ProductKey KeyOf(const ProductArgs& args) {
  return {args.element,  args.in, args.out,     args.epilogue,
          args.operands, 0,       args.residual};
}

std::string KeyText(const ProductKey& key) {
  return absl::StrCat(NameOf(kTypes, Types(key.element, key.operands)), " ",
                      key.in, " ", key.out, " ",
                      NameOf(kEpilogues, key.epilogue),
                      key.residual ? kResidual : "",
                      key.rows == 0 ? "" : absl::StrCat(" ", key.rows));
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
    ProductKey all_rows = key;
    all_rows.rows = 0;
    absl::StrAppend(&text, KeyText(all_rows), " ", key.rows, " ",
                    absl::BytesToHexString(algorithm), "\n");
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
    return absl::DataLossError(
        "it is corrupt: its digest does not match its content");
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
      return absl::DataLossError(absl::StrCat("invalid line: ", Quote(line)));
  }
  return choices;
}

TuningStore::TuningStore(std::string folder, TunedFor tuned_for)
    : folder_(std::move(folder)),
      tuned_for_(std::move(tuned_for)),
      name_(TuningFileName(tuned_for_)) {
  found_ = Read(/*tell=*/true);
}

std::string TuningStore::path() const {
  return folder_.empty() ? "" : absl::StrCat(folder_, "/", name_);
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
    AddNote(absl::StrCat("warning: ", path(),
                         " is not used, so algorithms are timed again: ",
                         choices.status().message()));
  }
  return {};
}

absl::Status TuningStore::Write(const Choices& choices) {
  const absl::StatusOr<FileLock> lock =
      FileLock::Take(folder_, absl::StrCat(name_, ".lock"));
  if (!lock.ok()) return lock.status();
  Choices all = Read(/*tell=*/false);
  for (const auto& [key, algorithm] : choices) all[key] = algorithm;
  return WriteFileAtomically(folder_, name_, FormatTuning(tuned_for_, all));
}

const Algorithm* TuningStore::Find(const ProductKey& key) const {
  return FindIn(found_, key);
}

void TuningStore::Keep(const Choices& choices) {
  for (const auto& [key, algorithm] : choices) found_[key] = algorithm;
  if (folder_.empty() || choices.empty() || !writable_) return;
  const absl::Status status = Write(choices);
  writable_ = status.ok();
  if (writable_) return;
  AddNote(absl::StrCat(
      "warning: ", path(),
      " cannot be written, so the next start times algorithms again: ",
      status.message()));
}

const Algorithm* TuningStore::Reference(const ProductKey& key) const {
  return FindIn(references_, key);
}

}  // namespace cuda
}  // namespace encoderd
