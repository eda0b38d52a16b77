// Tokenizer::Load: which files a folder has, and which class serves what they
// say.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/io/file.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/pipeline_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/wordpiece/bert_tokenizer.h"

namespace encoderd {
namespace {

absl::Status NoTokenizer(const std::string& folder) {
  std::string start = absl::StrCat(
      "no tokenizer in the folder ", Quote(absl::StripSuffix(folder, "/")),
      ": neither tokenizer.json, nor vocab.txt, nor merges.txt");
  for (const char* name :
       {"sentencepiece.bpe.model", "spiece.model", "tokenizer.model"}) {
    if (FileExists(folder, name)) {
      absl::StrAppend(&start, " (", name, " is not read)");
    }
  }
  return absl::NotFoundError(absl::StrCat(
      start,
      "; fetch the model again, with its tokenizer.json, or make it: python "
      "-c \"from transformers import AutoTokenizer; "
      "AutoTokenizer.from_pretrained('MODEL').save_pretrained('FOLDER')\""));
}

absl::StatusOr<TokenizerSpec> ReadSpec(const std::string& folder) {
  if (FileExists(folder, "tokenizer.json")) return ReadTokenizerJson(folder);
  if (FileExists(folder, "merges.txt")) return ReadVocabularyAndMerges(folder);
  if (FileExists(folder, "vocab.txt")) return ReadVocabulary(folder);
  return NoTokenizer(folder);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Load(
    const std::string& folder) {
  absl::StatusOr<TokenizerSpec> spec = ReadSpec(folder);
  if (!spec.ok()) return spec.status();
  return BertTokenizer::Fits(*spec)
             ? BertTokenizer::Create(*std::move(spec))
             : PipelineTokenizer::Create(*std::move(spec));
}

}  // namespace encoderd
