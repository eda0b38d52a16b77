#include "engine/base/batch.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/error.h"
#include "engine/base/reasons.h"

namespace encoderd {
namespace {

absl::Status OutOfRange(absl::string_view kind, absl::string_view reason,
                        absl::string_view field, int64_t index, int32_t id,
                        int32_t limit) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(kind, " id ", id, " at index ", index, " is outside the ",
                   kind, " table of ", limit, " rows; ids are below ", limit),
      {std::string(reason),
       {{"index", absl::StrCat(index)},
        {"id", absl::StrCat(id)},
        {"limit", absl::StrCat(limit)}},
       std::string(field)});
}

absl::Status NoSegments(int64_t index, int32_t id) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("segment id ", id, " at index ", index,
                                "; the model has no segments: only 0"),
                   {reason::kSegmentIdOutOfRange,
                    {{"index", absl::StrCat(index)},
                     {"id", absl::StrCat(id)},
                     {"limit", "1"}},
                    "tokens.segment_ids"});
}

absl::Status CheckLength(absl::string_view name, absl::string_view reason,
                         int64_t count, int64_t tokens) {
  if (count == 0 || count == tokens) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(name, " has ", count, " values for ", tokens, " token ids"),
      {std::string(reason),
       {{"count", absl::StrCat(count)}, {"token_count", absl::StrCat(tokens)}},
       absl::StrCat("tokens.", name)});
}

// Index of the first id outside [0, limit), or -1.
int64_t FirstOutside(const std::vector<int32_t>& ids, int32_t limit) {
  const auto outside = [limit](int32_t id) {
    return static_cast<uint32_t>(id) >= static_cast<uint32_t>(limit);
  };
  const auto it = std::find_if(ids.begin(), ids.end(), outside);
  return it == ids.end() ? -1 : it - ids.begin();
}

// Models without a segment table still accept segment id 0.
int32_t SegmentLimit(const IdLimits& limits) {
  return std::max(limits.segment_rows, 1);
}

}  // namespace

absl::Status ValidateSequence(const TokenSequence& sequence,
                              const IdLimits& limits) {
  const int64_t tokens = sequence.size();
  if (tokens == 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "the input has no tokens",
                     {reason::kEmptyInput, {}, "tokens.ids"});
  }
  if (tokens > limits.max_len) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("the input has ", tokens,
                     " tokens; this model takes at most ", limits.max_len),
        {reason::kInputTooLong,
         {{"token_count", absl::StrCat(tokens)},
          {"max_tokens", absl::StrCat(limits.max_len)}},
         ""});
  }
  absl::Status status = CheckLength("segment_ids", reason::kSegmentIdsLength,
                                    sequence.segment_ids.size(), tokens);
  if (!status.ok()) return status;
  status = CheckLength("position_ids", reason::kPositionIdsLength,
                       sequence.position_ids.size(), tokens);
  if (!status.ok()) return status;

  int64_t at = FirstOutside(sequence.token_ids, limits.token_rows);
  if (at >= 0) {
    return OutOfRange("token", reason::kTokenIdOutOfRange, "tokens.ids", at,
                      sequence.token_ids[at], limits.token_rows);
  }
  at = FirstOutside(sequence.segment_ids, SegmentLimit(limits));
  if (at >= 0) {
    if (limits.segment_rows == 0) {
      return NoSegments(at, sequence.segment_ids[at]);
    }
    return OutOfRange("segment", reason::kSegmentIdOutOfRange,
                      "tokens.segment_ids", at, sequence.segment_ids[at],
                      limits.segment_rows);
  }
  at = FirstOutside(sequence.position_ids, limits.position_rows);
  if (at >= 0) {
    return OutOfRange("position", reason::kPositionIdOutOfRange,
                      "tokens.position_ids", at, sequence.position_ids[at],
                      limits.position_rows);
  }
  return absl::OkStatus();
}

void PackedBatch::Append(const TokenSequence& sequence,
                         const IdLimits& limits) {
  const int32_t n = static_cast<int32_t>(sequence.size());
  token_ids.insert(token_ids.end(), sequence.token_ids.begin(),
                   sequence.token_ids.end());
  if (sequence.segment_ids.empty()) {
    segment_ids.resize(segment_ids.size() + n, 0);
  } else {
    segment_ids.insert(segment_ids.end(), sequence.segment_ids.begin(),
                       sequence.segment_ids.end());
  }
  if (sequence.position_ids.empty()) {
    const int32_t padding = limits.position_offset - 1;
    int32_t next = limits.position_offset;
    for (const int32_t id : sequence.token_ids)
      position_ids.push_back(id == padding ? padding : next++);
  } else {
    position_ids.insert(position_ids.end(), sequence.position_ids.begin(),
                        sequence.position_ids.end());
  }
  cu_seqlens.push_back(cu_seqlens.back() + n);
  max_seqlen = std::max(max_seqlen, n);
}

void PackedBatch::Reserve(int64_t tokens, int64_t sequences) {
  token_ids.reserve(tokens);
  segment_ids.reserve(tokens);
  position_ids.reserve(tokens);
  cu_seqlens.reserve(sequences + 1);
}

void PackedBatch::Clear() {
  token_ids.clear();
  segment_ids.clear();
  position_ids.clear();
  cu_seqlens.assign(1, 0);
  max_seqlen = 0;
}

absl::Status ValidateBatch(const PackedBatch& batch, const IdLimits& limits) {
  const int64_t tokens = batch.num_tokens();
  if (batch.cu_seqlens.empty() || batch.cu_seqlens.front() != 0 ||
      batch.cu_seqlens.back() != tokens ||
      static_cast<int64_t>(batch.segment_ids.size()) != tokens ||
      static_cast<int64_t>(batch.position_ids.size()) != tokens) {
    return absl::InternalError(absl::StrCat(
        "packed batch of ", tokens, " tokens has ", batch.segment_ids.size(),
        " segment ids, ", batch.position_ids.size(), " position ids"));
  }
  int32_t longest = 0;
  for (size_t b = 0; b + 1 < batch.cu_seqlens.size(); ++b) {
    const int32_t length = batch.cu_seqlens[b + 1] - batch.cu_seqlens[b];
    if (length <= 0)
      return absl::InternalError(
          absl::StrCat("sequence ", b, " has length ", length));
    longest = std::max(longest, length);
  }
  if (longest != batch.max_seqlen) {
    return absl::InternalError(absl::StrCat("max_seqlen is ", batch.max_seqlen,
                                            " but the longest sequence has ",
                                            longest));
  }
  if (FirstOutside(batch.token_ids, limits.token_rows) >= 0 ||
      FirstOutside(batch.segment_ids, SegmentLimit(limits)) >= 0 ||
      FirstOutside(batch.position_ids, limits.position_rows) >= 0) {
    return absl::InternalError("packed batch contains an id outside its table");
  }
  return absl::OkStatus();
}

}  // namespace encoderd
