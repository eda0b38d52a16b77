// What the hot paths work on. The standard fixes the numbers of mt19937, not
// those of its distributions: they are not used.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/instructions/hot_path.h"

namespace encoderd {
namespace {

constexpr char kSentences[] = ENCODERD_SOURCE_DIR "/tests/golden/sentences.txt";
constexpr int kSentencesOfAText = 12;
constexpr int kEnglishSentences = 8;  // the first ones of the file

}  // namespace

void Require(bool ok, absl::string_view what) {
  if (ok) return;
  std::fprintf(stderr, "hot_paths: %s\n", std::string(what).c_str());
  std::exit(1);
}

std::vector<std::string> FixedTexts(int count) {
  std::vector<std::string> sentences;
  std::ifstream file(kSentences);
  for (std::string line; std::getline(file, line);) sentences.push_back(line);
  Require(sentences.size() > kEnglishSentences,
          absl::StrCat("cannot read ", kSentences));
  std::mt19937 random(1);
  std::vector<std::string> texts(count);
  for (std::string& text : texts) {
    for (int i = 0; i < kSentencesOfAText; ++i) {
      const size_t choices =
          random() % 4 == 0 ? sentences.size() : kEnglishSentences;
      absl::StrAppend(&text, i == 0 ? "" : " ", sentences[random() % choices]);
    }
  }
  return texts;
}

std::vector<TokenSequence> FixedSequences(int count) {
  std::mt19937 random(2);
  std::vector<TokenSequence> sequences(count);
  for (TokenSequence& sequence : sequences) {
    const uint32_t longest = random() % 4 == 0 ? 124 : 20;
    sequence.token_ids.resize(4 + random() % longest);
    std::generate(sequence.token_ids.begin(), sequence.token_ids.end(),
                  [&] { return static_cast<int32_t>(random() % 200); });
  }
  return sequences;
}

std::vector<float> FixedValues(int64_t count) {
  std::mt19937 random(3);
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] {
    return static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  });
  return values;
}

}  // namespace encoderd
