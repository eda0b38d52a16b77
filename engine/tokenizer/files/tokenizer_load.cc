// Tokenizer::Load: which files a folder has, and which class serves what they
// say.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/io/sha256.h"
#include "engine/tokenizer/files/tokenizer_config.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/pipeline_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/wordpiece/bert_tokenizer.h"

namespace encoderd {
namespace {

absl::Status NoTokenizer(const Folder& folder) {
  std::string start =
      absl::StrCat("no tokenizer in the folder ",
                   Quote(absl::StripSuffix(folder.Full(), "/")),
                   ": neither tokenizer.json, nor vocab.txt, nor merges.txt");
  for (const char* name :
       {"sentencepiece.bpe.model", "spiece.model", "tokenizer.model"}) {
    if (FileExists(folder, name).value_or(false)) {
      absl::StrAppend(&start, " (", name, " is not read)");
    }
  }
  return absl::NotFoundError(absl::StrCat(
      start,
      "; fetch the model again, with its tokenizer.json, or make it: python "
      "-c \"from transformers import AutoTokenizer; "
      "AutoTokenizer.from_pretrained('MODEL').save_pretrained('FOLDER')\""));
}

absl::StatusOr<TokenizerSpec> ReadSpec(const Folder& folder) {
  using Read = absl::StatusOr<TokenizerSpec> (*)(const Folder& folder);
  constexpr std::pair<const char*, Read> kFiles[] = {
      {"tokenizer.json", &ReadTokenizerJson},
      {"merges.txt", &ReadVocabularyAndMerges},
      {"vocab.txt", &ReadVocabulary},
  };
  for (const auto& [name, read] : kFiles) {
    const absl::StatusOr<bool> exists = FileExists(folder, name);
    if (!exists.ok()) return exists.status();
    if (*exists) return read(folder);
  }
  return NoTokenizer(folder);
}

// Has texts lowercased before all other steps, unless a Lowercase is where
// sentence-transformers looks for one. BERT's normalizer lowercases after its
// others, which makes no difference: they do not look at case.
void Lowercase(TokenizerSpec* spec) {
  if (spec->lowercase_on_top) return;
  std::vector<NormalizerStep>& steps = spec->normalizer;
  constexpr BertNormalizerOptions kNothing = {false, false, false, false};
  if (steps.empty() && std::holds_alternative<WordPieceOptions>(spec->model))
    steps.emplace_back(kNothing);
  auto* const bert = steps.size() == 1
                         ? std::get_if<BertNormalizerOptions>(&steps[0])
                         : nullptr;
  if (bert != nullptr && bert->lowercase) return;
  if (bert != nullptr) {
    bert->lowercase = true;
  } else {
    steps.emplace_back(LowercaseStep());
    std::rotate(steps.begin(), steps.end() - 1, steps.end());
  }
  spec->remarks.notes.push_back(
      "texts are lowercased: sentence-transformers' do_lower_case is true");
}

// Classes that give a model segment ids where model_input_names does not say.
constexpr absl::string_view kGiveSegments[] = {"BertTokenizer",
                                               "ConvBertTokenizer",
                                               "DPRContextEncoderTokenizer",
                                               "DPRQuestionEncoderTokenizer",
                                               "DebertaTokenizer",
                                               "DebertaV2Tokenizer",
                                               "ElectraTokenizer",
                                               "FNetTokenizer",
                                               "LayoutLMTokenizer",
                                               "LxmertTokenizer",
                                               "MobileBertTokenizer",
                                               "SqueezeBertTokenizer"};

absl::Status SegmentsNotSupported(absl::string_view why) {
  return absl::UnimplementedError(absl::StrCat(
      tokenizer_config::kFile, ": ", why,
      ": of this model transformers adds rows of the token table for them, "
      "which is not supported; where it was trained without, set "
      "model_input_names to [\"input_ids\", \"attention_mask\"]"));
}

// transformers gives a model no segments that model_input_names leaves out.
absl::Status SettleSegments(const Folder& folder, bool refuse,
                            TokenizerSpec* spec) {
  constexpr char kNames[] = "model_input_names";
  const absl::StatusOr<Json> config = tokenizer_config::Read(folder);
  if (!config.ok()) return config.status();
  const JsonFields fields(*config, tokenizer_config::kFile);
  const Json* const names = fields.Find(kNames);
  if (names == nullptr) {
    if (!refuse) return absl::OkStatus();
    const auto read = tokenizer_config::ReadClass(folder, fields);
    if (!read.ok()) return read.status();
    if (absl::c_linear_search(kGiveSegments,
                              absl::StripSuffix(read->name, "Fast")))
      return SegmentsNotSupported(
          absl::StrCat("a ", read->name, " gives token_type_ids"));
    return absl::OkStatus();
  }
  if (!names->is_array()) return fields.Bad(kNames, "expected an array");
  if (absl::c_linear_search(*names, "token_type_ids")) {
    return refuse ? SegmentsNotSupported(
                        absl::StrCat(kNames, " has token_type_ids"))
                  : absl::OkStatus();
  }
  if (spec->post_processor.pieces.DropSegments()) {
    spec->remarks.notes.push_back(
        absl::StrCat("all segment ids are 0: ", tokenizer_config::kFile, "'s ",
                     kNames, " has no token_type_ids, as in transformers"));
  }
  return absl::OkStatus();
}

// Of an added token without a row there is nothing to compute. Ids of the
// vocabulary itself and of the template stay, to be rejected as files of two
// models.
void DropTokensFrom(int32_t rows, TokenizerSpec* spec) {
  const auto first =
      std::max<int64_t>(rows, static_cast<int64_t>(spec->vocabulary.size()));
  if (spec->post_processor.pieces.max_special_id() >= first) return;
  std::vector<AddedToken>& tokens = spec->added_tokens;
  const auto is_beyond = [&](const AddedToken& token) {
    return token.id >= first;
  };
  const auto dropped = std::stable_partition(tokens.begin(), tokens.end(),
                                             std::not_fn(is_beyond));
  if (dropped == tokens.end()) return;
  spec->remarks.notes.push_back(
      absl::StrCat("added tokens without a row in the token table of ", rows,
                   " are ignored: ", tokens.end() - dropped, ", such as ",
                   Quote(dropped->content)));
  tokens.erase(dropped, tokens.end());
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Load(
    const std::string& model_folder, const TokenizerOptions& options) {
  const Folder folder(model_folder, options.subfolder);
  absl::StatusOr<TokenizerSpec> spec = ReadSpec(folder);
  if (!spec.ok()) return spec.status();
  const absl::Status status =
      SettleSegments(folder, options.refuse_segments, &*spec);
  if (!status.ok()) return status;
  if (options.lowercase) Lowercase(&*spec);
  if (options.token_rows > 0) DropTokensFrom(options.token_rows, &*spec);
  absl::StatusOr<std::string> rules = Sha256OfString(RulesText(*spec));
  if (!rules.ok()) return rules.status();
  spec->rules_sha256 = *std::move(rules);
  return BertTokenizer::Fits(*spec)
             ? BertTokenizer::Create(*std::move(spec))
             : PipelineTokenizer::Create(*std::move(spec));
}

}  // namespace encoderd
