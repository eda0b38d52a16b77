#include "engine/tokenizer/pipeline_tokenizer.h"

#include <cstring>
#include <utility>
#include <variant>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/tokenizer/bpe/byte_pair.h"
#include "engine/tokenizer/unigram/unigram.h"
#include "engine/tokenizer/word_cache.h"

namespace encoderd {
namespace {

absl::StatusOr<std::unique_ptr<const TokenModel>> BuildModel(
    TokenizerSpec* spec) {
  if (auto* const unigram = std::get_if<UnigramOptions>(&spec->model)) {
    absl::StatusOr<std::unique_ptr<const Unigram>> model =
        Unigram::Build(std::move(spec->vocabulary), std::move(*unigram));
    if (!model.ok()) return model.status();
    return *std::move(model);
  }
  absl::StatusOr<std::unique_ptr<const BytePair>> model =
      BytePair::Build(std::move(spec->vocabulary),
                      std::get<BytePairOptions>(std::move(spec->model)));
  if (!model.ok()) return model.status();
  if (const int missing = (*model)->missing_bytes(); missing > 0) {
    spec->remarks.notes.push_back(
        absl::StrCat("the vocabulary has no entry for ", missing,
                     " of 256 bytes; in text they become unknown tokens or are "
                     "dropped, as in the reference"));
  }
  return *std::move(model);
}

}  // namespace

class PipelineTokenizer::OwnScratch : public ComposedTokenizer::Scratch {
 public:
  explicit OwnScratch(std::unique_ptr<TokenModel::Scratch> of_model)
      : model(std::move(of_model)) {}

  void Shrink() override {
    Scratch::Shrink();
    normal.Shrink();
    normalizer.Shrink();
    pre_tokenizer.Shrink();
    model->Shrink();
    ShrinkBuffer(&ids);
  }

  NormalText normal;  // one piece of the text
  Normalizer::Scratch normalizer;
  PreTokenizer::Scratch pre_tokenizer;
  std::unique_ptr<TokenModel::Scratch> model;
  WordCache cache;
  // The text's ids are ids[0, count); what lies behind is room.
  std::vector<int32_t> ids;
  size_t count = 0;
};

absl::StatusOr<std::unique_ptr<const Tokenizer>> PipelineTokenizer::Create(
    TokenizerSpec spec) {
  absl::StatusOr<std::unique_ptr<const TokenModel>> model = BuildModel(&spec);
  if (!model.ok()) return model.status();
  Normalizer normalizer(std::move(spec.normalizer));
  absl::StatusOr<AddedVocabulary> added = AddedVocabulary::Build(
      std::move(spec.added_tokens), (*model)->vocabulary().size(),
      [&](const std::string& content) { return normalizer.Apply(content); });
  if (!added.ok()) return added.status();
  auto tokenizer = absl::WrapUnique(new PipelineTokenizer(
      std::move(normalizer), PreTokenizer(std::move(spec.pre_tokenizer)),
      *std::move(model), *std::move(added), std::move(spec.post_processor),
      std::move(spec.remarks), std::move(spec.rules_sha256)));
  absl::Status status = tokenizer->Validate();
  if (!status.ok()) return status;
  return tokenizer;
}

TokenizerScratchPtr PipelineTokenizer::NewScratch() const {
  return std::make_unique<OwnScratch>(model_->NewScratch());
}

int64_t PipelineTokenizer::EncodeText(absl::string_view text, bool offsets,
                                      Scratch* scratch, TextIds* out) const {
  auto* const own = static_cast<OwnScratch*>(scratch);
  own->count = 0;
  const int64_t limit = NormalText::Limit(static_cast<int64_t>(text.size()));
  int64_t before = 0;  // bytes of the normalized pieces before this one
  const auto put_token = [own](int32_t id) {
    if (own->ids.size() == own->count) own->ids.resize(2 * own->count + 64);
    own->ids[own->count++] = id;
  };
  for (const AddedTokens::Piece& piece : own->pieces) {
    const auto begin = static_cast<int32_t>(piece.begin);
    const absl::string_view source =
        text.substr(piece.begin, piece.end - piece.begin);
    if (piece.id >= 0) {
      put_token(piece.id);
      if (offsets) {
        AppendOffset(source, text, {begin, static_cast<int32_t>(piece.end)},
                     &out->offsets);
      }
      continue;
    }
    NormalText& normal = own->normal;
    normal.Assign(source, begin, offsets, limit - before);
    normalizer_.Apply(&normal, &own->normalizer);
    own->normalizer.Shrink();  // before the model takes memory
    const int64_t so_far = before + normal.wanted_bytes();
    if (so_far > limit) return so_far;
    if (added().normalized.empty()) {
      const int64_t too_large =
          EncodePart(text, normal.all(), offsets, own, &out->offsets);
      if (too_large > 0) return before + too_large;
      before = so_far;
      continue;
    }
    added().normalized.Split(normal.text(), &own->normal_pieces);
    for (const AddedTokens::Piece& part : own->normal_pieces) {
      const TextRange range{static_cast<int32_t>(part.begin),
                            static_cast<int32_t>(part.end)};
      if (part.id < 0) {
        const int64_t too_large =
            EncodePart(text, range, offsets, own, &out->offsets);
        if (too_large > 0) return before + too_large;
        continue;
      }
      put_token(part.id);
      if (offsets) {
        AppendOffset(normal.text(range), text, normal.Place(range),
                     &out->offsets);
      }
    }
    before = so_far;
  }
  out->count = static_cast<int64_t>(own->count);
  int32_t* const ids = out->ids.Reserve(out->count);
  if (own->count > 0) {
    std::memcpy(ids, own->ids.data(), own->count * sizeof(int32_t));
  }
  return 0;
}

int64_t PipelineTokenizer::EncodePart(absl::string_view text, TextRange part,
                                      bool offsets, OwnScratch* scratch,
                                      std::vector<ByteOffset>* places) const {
  const PreTokenizer::Words words =
      pre_tokenizer_.Split(scratch->normal, part, &scratch->pre_tokenizer);
  if (words.text->exceeded()) return words.text->wanted_bytes();
  const size_t needed = scratch->count + words.text->text().size() +
                        static_cast<size_t>(WordCache::kMaxIds);
  if (scratch->ids.size() < needed) scratch->ids.resize(needed + needed / 4);
  if (!offsets) {
    EncodeWords(words, scratch);
    return 0;
  }
  for (const TextRange& word : words.words) {
    const absl::string_view bytes = words.text->text(word);
    model_->Encode(bytes, scratch->model.get());
    for (const TokenModel::Piece& piece : scratch->model->pieces) {
      scratch->ids[scratch->count++] = piece.id;
      const ByteOffset place =
          words.text->Place({word.begin + piece.begin, word.begin + piece.end});
      AppendOffset(
          model_->Value(piece.id,
                        bytes.substr(piece.begin, piece.end - piece.begin)),
          text, place, places);
    }
  }
  return 0;
}

void PipelineTokenizer::EncodeWords(const PreTokenizer::Words& words,
                                    OwnScratch* scratch) const {
  const absl::string_view text = words.text->text();
  const char* const text_end = text.data() + text.size();
  int32_t* out = scratch->ids.data() + scratch->count;
  for (const TextRange& word : words.words) {
    const char* const begin = text.data() + word.begin;
    const auto bytes = static_cast<uint32_t>(word.end - word.begin);
    const bool cached = bytes <= WordCache::kMaxBytes;
    WordCache::Key key;
    if (cached) {
      char copy[WordCache::kMaxBytes] = {};
      const bool at_end = text_end - begin < WordCache::kMaxBytes;
      if (at_end) std::memcpy(copy, begin, bytes);
      key = WordCache::MakeKey(at_end ? copy : begin, bytes);
      const WordCache::Entry* entry = scratch->cache.Find(key);
      if (entry != nullptr) {
        WordCache::Copy(out, entry->ids, entry->count);
        out += entry->count;
        continue;
      }
    }
    model_->Encode(absl::string_view(begin, bytes), scratch->model.get());
    const int32_t* const first = out;
    for (const TokenModel::Piece& piece : scratch->model->pieces) {
      *out++ = piece.id;
    }
    if (cached) scratch->cache.Insert(key, first, out - first);
  }
  scratch->count = static_cast<size_t>(out - scratch->ids.data());
}

}  // namespace encoderd
