// A tokenizer's files, cut at lines of three dashes. The first byte says which:
// 'j' tokenizer.json, 'v' vocab.txt, 'm' vocab.json and merges.txt; all with
// tokenizer_config.json, special_tokens_map.json and added_tokens.json at the
// end. Whatever they say, the answer is a status, or parts that can be used.
// The table of all code points is left out: it depends on four switches only
// and takes too long for millions of runs.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/tokenizer/files/tokenizer_spec.h"
#include "tests/fuzz/model_files.h"
#include "tests/fuzz/require.h"

namespace {

// Next to each kind of vocabulary.
constexpr const char* kSettings[] = {
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"};

using encoderd::FuzzFolder;
using encoderd::Put;
using encoderd::Require;

// Each entry is its own token.
bool UseWordPiece(encoderd::TokenizerSpec* spec) {
  const size_t entries = spec->vocabulary.size();
  const auto words = encoderd::WordPiece::Build(
      std::move(spec->vocabulary),
      std::get<encoderd::WordPieceOptions>(std::move(spec->model)));
  if (!words.ok()) return false;
  for (size_t id = 0; id < entries; ++id) {
    const std::string& word = words->vocabulary()[id];
    std::string ids(sizeof(int32_t) * (word.size() + 1), '\0');
    auto* const first = reinterpret_cast<int32_t*>(ids.data());
    const int32_t* const end =
        words->Match(word.data(), word.data() + word.size(), first);
    Require(end == first + 1 && *first == static_cast<int32_t>(id));
  }
  return true;
}

// The tokens of any word are ids of the vocabulary, in order.
template <typename Model, typename Options>
bool UseModel(encoderd::TokenizerSpec* spec) {
  const auto model = Model::Build(std::move(spec->vocabulary),
                                  std::get<Options>(std::move(spec->model)));
  if (!model.ok()) return false;
  const auto scratch = (*model)->NewScratch();
  std::vector<std::string> words = (*model)->vocabulary();
  words.push_back(std::string(100, 'a') + "\u00ff\x01");
  for (const std::string& word : words) {
    (*model)->Encode(word, scratch.get());
    int32_t at = 0;
    for (const auto& piece : scratch->pieces) {
      Require(piece.id >= 0 &&
              static_cast<size_t>(piece.id) < words.size() - 1);
      Require(piece.begin <= at && piece.end >= at);
      Require(piece.begin < piece.end);
      at = piece.end;
    }
    Require(static_cast<size_t>(at) <= word.size());
  }
  return true;
}

// Normalizer and words: without places the same text and words as with them.
void UseSteps(const encoderd::TokenizerSpec& spec) {
  const encoderd::Normalizer normalizer(spec.normalizer);
  const encoderd::PreTokenizer pre_tokenizer(spec.pre_tokenizer);
  const std::string text = "\u00c9a  b\u0301 \r\n\uac00x\u00a0\u0301.";
  encoderd::NormalText plain, tracked;
  encoderd::Normalizer::Scratch scratch;
  plain.Assign(text, 0, false);
  normalizer.Apply(&plain, &scratch);
  tracked.Assign(text, 0, true);
  normalizer.Apply(&tracked, &scratch);
  Require(plain.text() == tracked.text());
  Require(plain.start_bytes() == tracked.start_bytes());
  encoderd::PreTokenizer::Scratch room, plain_room;
  const auto words = pre_tokenizer.Split(tracked, tracked.all(), &room);
  const auto plain_words = pre_tokenizer.Split(plain, plain.all(), &plain_room);
  Require(words.text->text() == plain_words.text->text());
  Require(words.words.size() == plain_words.words.size());
  for (const encoderd::TextRange& word : words.words) {
    Require(word.begin < word.end && word.end <= words.text->all().end);
    const encoderd::ByteOffset place = words.text->Place(word);
    Require(place.begin >= 0 && static_cast<size_t>(place.end) <= text.size());
  }
}

void Use(encoderd::TokenizerSpec spec) {
  const size_t entries = spec.vocabulary.size();
  const size_t added = spec.added_tokens.size();
  for (const encoderd::AddedToken& token : spec.added_tokens) {
    Require(token.id >= 0 && static_cast<size_t>(token.id) < entries + added);
  }
  if (std::holds_alternative<encoderd::WordPieceOptions>(spec.model)) {
    if (!UseWordPiece(&spec)) return;
  } else if (std::holds_alternative<encoderd::BytePairOptions>(spec.model)) {
    if (!UseModel<encoderd::BytePair, encoderd::BytePairOptions>(&spec)) return;
  } else if (!UseModel<encoderd::Unigram, encoderd::UnigramOptions>(&spec)) {
    return;
  }
  UseSteps(spec);
  const auto tokens = encoderd::AddedTokens::Build(spec.added_tokens);
  if (tokens.ok()) {
    std::vector<encoderd::AddedTokens::Piece> pieces;
    tokens->Split("a [SEP] text  with<x> tokens", &pieces);
    Require(!pieces.empty());
  }
  const auto vocab_size = static_cast<int32_t>(entries + added);
  const encoderd::Template& pieces = spec.post_processor.pieces;
  if (!pieces.Validate(vocab_size).ok()) return;
  const int32_t ids[] = {0, 0, 0};
  const encoderd::TextTokens text{ids, {}};
  encoderd::Encoding encoding;
  pieces.Apply(text, &text, false, &encoding);
  const int32_t special = pieces.num_special_tokens(true);
  Require(std::ssize(encoding.token_ids) == 6 + special);
  pieces.Truncate(special + 1, encoderd::TruncateSide::kEnd, &encoding);
  Require(std::ssize(encoding.token_ids) == 1 + special);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string cut = "\n---\n";
  const auto put_parts = [&](std::vector<const char*> names) {
    names.insert(names.end(), std::begin(kSettings), std::end(kSettings));
    size_t begin = 0;
    for (const char* name : names) {
      const size_t end = std::min(input.find(cut, begin), input.size());
      Put(name, input.substr(begin, end - begin));
      begin = std::min(end + cut.size(), input.size());
    }
  };
  absl::StatusOr<encoderd::TokenizerSpec> spec;
  if (data[0] == 'j') {
    put_parts({"tokenizer.json"});
    spec = encoderd::ReadTokenizerJson(FuzzFolder());
  } else if (data[0] == 'm') {
    put_parts({"vocab.json", "merges.txt"});
    spec = encoderd::ReadVocabularyAndMerges(FuzzFolder());
  } else {
    put_parts({"vocab.txt"});
    spec = encoderd::ReadVocabulary(FuzzFolder());
  }
  Require(spec.ok() || !spec.status().message().empty());
  if (spec.ok()) Use(*std::move(spec));
  return 0;
}
