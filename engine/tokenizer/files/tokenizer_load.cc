// Tokenizer::Load: which files a folder has, and which class serves what they
// say.
#include <utility>

#include "engine/io/file.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/pipeline_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/wordpiece/bert_tokenizer.h"

namespace encoderd {
namespace {

absl::StatusOr<TokenizerSpec> ReadSpec(const std::string& folder) {
  if (FileExists(folder, "tokenizer.json")) return ReadTokenizerJson(folder);
  if (FileExists(folder, "merges.txt")) return ReadVocabularyAndMerges(folder);
  return ReadVocabulary(folder);
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
