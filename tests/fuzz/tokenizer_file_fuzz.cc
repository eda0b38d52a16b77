// A tokenizer's files. The first byte says which: 'j' tokenizer.json follows;
// 'v' vocab.txt, and after a line of three dashes tokenizer_config.json.
// Whatever they say, the answer is a status, or parts that can be used. The
// table of all code points is left out: it depends on four switches only and
// takes too long for millions of runs.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/tokenizer/tokenizer_spec.h"

namespace {

constexpr const char* kFiles[] = {"tokenizer.json", "vocab.txt",
                                  "tokenizer_config.json"};

void Require(bool condition) {
  if (!condition) abort();
}

// In memory where the system has such a folder: a run writes millions of files.
std::string MakeFolder() {
  for (const char* parent : {"/dev/shm", "/tmp"}) {
    std::string folder = std::string(parent) + "/encoderd-fuzz-XXXXXX";
    if (mkdtemp(folder.data()) != nullptr) return folder;
  }
  abort();
}

void RemoveFolder(const std::string& folder) {
  for (const char* file : kFiles) unlink((folder + "/" + file).c_str());
  rmdir(folder.c_str());
}

const std::string& Folder() {
  static const std::string& folder = *new std::string(MakeFolder());
  static const int registered = atexit([] { RemoveFolder(folder); });
  Require(registered == 0);
  return folder;
}

void Put(const char* name, const std::string& content) {
  const std::string path = Folder() + "/" + name;
  if (content.empty()) {
    unlink(path.c_str());
    return;
  }
  FILE* file = fopen(path.c_str(), "wb");
  Require(file != nullptr);
  Require(fwrite(content.data(), 1, content.size(), file) == content.size());
  Require(fclose(file) == 0);
}

void Use(encoderd::TokenizerSpec spec) {
  const size_t entries = spec.vocabulary.size();
  const size_t added = spec.added_tokens.size();
  for (const encoderd::AddedToken& token : spec.added_tokens) {
    Require(token.id >= 0 && static_cast<size_t>(token.id) < entries + added);
  }
  const auto words = encoderd::WordPiece::Build(std::move(spec.vocabulary),
                                                std::move(spec.word_piece));
  if (!words.ok()) return;
  for (size_t id = 0; id < entries; ++id) {
    const std::string& word = words->vocabulary()[id];
    std::string ids(sizeof(int32_t) * (word.size() + 1), '\0');
    auto* const first = reinterpret_cast<int32_t*>(ids.data());
    const int32_t* const end =
        words->Match(word.data(), word.data() + word.size(), first);
    Require(end == first + 1 && *first == static_cast<int32_t>(id));
  }
  const auto tokens = encoderd::AddedTokens::Build(spec.added_tokens);
  if (tokens.ok()) {
    std::vector<encoderd::AddedTokens::Piece> pieces;
    tokens->Split("a [SEP] text  with<x> tokens", &pieces);
    Require(!pieces.empty());
  }
  const auto vocab_size = static_cast<int32_t>(entries + added);
  if (!spec.post_processor.Validate(vocab_size).ok()) return;
  const int32_t ids[] = {0, 0, 0};
  const encoderd::TextTokens text{ids, {}};
  encoderd::Encoding encoding;
  spec.post_processor.Apply(text, &text, false, &encoding);
  const int32_t special = spec.post_processor.num_special_tokens(true);
  Require(encoding.token_ids.size() == static_cast<size_t>(6 + special));
  spec.post_processor.Truncate(special + 1, encoderd::TruncateSide::kEnd,
                               &encoding);
  Require(encoding.token_ids.size() == static_cast<size_t>(1 + special));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool json = data[0] == 'j';
  if (json) {
    Put("tokenizer.json", input);
  } else {
    const std::string cut = "\n---\n";
    const size_t end = std::min(input.find(cut), input.size());
    Put("vocab.txt", input.substr(0, end));
    Put("tokenizer_config.json",
        input.substr(std::min(end + cut.size(), input.size())));
  }
  auto spec = json ? encoderd::ReadTokenizerJson(Folder())
                   : encoderd::ReadVocabulary(Folder());
  Require(spec.ok() || !spec.status().message().empty());
  if (spec.ok()) Use(*std::move(spec));
  return 0;
}
