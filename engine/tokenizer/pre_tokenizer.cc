#include "engine/tokenizer/pre_tokenizer.h"

#include "engine/tokenizer/buffer.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/unicode_rules.h"
#include "engine/tokenizer/utf8.h"

namespace encoderd {
namespace {

using Words = PreTokenizer::Words;

// Where a step may put the words that it makes.
struct Room {
  NormalText* text;
  std::vector<TextRange>* words;
};

void CutByteLevel(const ByteLevelSplit& step, const NormalText& text,
                  absl::Span<const TextRange> in, std::vector<TextRange>* out) {
  if (!step.use_regex) {
    out->assign(in.begin(), in.end());
    return;
  }
  for (const TextRange& word : in) {
    byte_level::SplitWords(text.text(), word, out);
  }
}

Words Apply(const ByteLevelSplit& step, const Words& in, const Room& room) {
  if (!step.add_prefix_space) {
    CutByteLevel(step, *in.text, in.words, room.words);
    return {in.text, *room.words};
  }
  room.text->Reset(in.text->tracked());
  std::vector<TextRange> prefixed;
  prefixed.reserve(in.words.size());
  int length = 0;
  for (const TextRange& word : in.words) {
    const int32_t begin = room.text->all().end;
    const absl::string_view bytes = in.text->text(word);
    if (bytes[0] != ' ') {
      // The space stands for the same as the first character.
      utf8::Decode(reinterpret_cast<const uint8_t*>(bytes.data()), &length);
      ByteOffset place;
      if (in.text->tracked()) {
        place = in.text->Place({word.begin, word.begin + length});
      }
      room.text->Append(" ", place);
    }
    room.text->Append(*in.text, word);
    prefixed.push_back({begin, room.text->all().end});
  }
  CutByteLevel(step, *room.text, prefixed, room.words);
  return {room.text, *room.words};
}

Words Apply(const BertSplit&, const Words& in, const Room& room) {
  int length = 0;
  for (const TextRange& word : in.words) {
    int32_t first = word.begin;
    for (int32_t at = word.begin; at < word.end; at += length) {
      const char32_t c = utf8::Decode(
          reinterpret_cast<const uint8_t*>(in.text->text().data()) + at,
          &length);
      const bool space = unicode::IsSpace(c);
      if (!space && !unicode::IsPunctuation(c)) continue;
      if (first < at) room.words->push_back({first, at});
      if (!space) room.words->push_back({at, at + length});
      first = at + length;
    }
    if (first < word.end) room.words->push_back({first, word.end});
  }
  return {in.text, *room.words};
}

}  // namespace

void PreTokenizer::Scratch::Shrink() {
  for (NormalText& text : texts) text.Shrink();
  for (std::vector<TextRange>& words : ranges) ShrinkBuffer(&words);
}

Words PreTokenizer::Split(const NormalText& text, TextRange part,
                          Scratch* scratch) const {
  scratch->ranges[1].clear();
  if (part.begin < part.end) scratch->ranges[1].push_back(part);
  Words words{&text, scratch->ranges[1]};
  int turn = 0;
  for (const PreTokenizerStep& step : steps_) {
    // A step writes where the words that it reads do not lie.
    const int own = words.text == &scratch->texts[0] ? 1 : 0;
    const Room room{&scratch->texts[own], &scratch->ranges[turn]};
    room.words->clear();
    words = std::visit(
        [&](const auto& kind) { return Apply(kind, words, room); }, step);
    turn = 1 - turn;
  }
  return words;
}

}  // namespace encoderd
