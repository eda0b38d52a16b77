#include "server/rpc/unread_answers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/pipeline/reasons.h"

namespace encoderd {

absl::Status UnreadAnswers::Add(const std::shared_ptr<AnsweringCall>& call,
                                uint64_t caller, int64_t bytes,
                                absl::Time now) {
  if (bytes == 0) return absl::OkStatus();
  std::vector<std::shared_ptr<AnsweringCall>> cut;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    cut = CutOldest(bytes, now);
    const int64_t kept = bytes_ - cut_bytes_;
    if (kept + bytes > max_bytes_ && callers_.count(caller) != 0) {
      status = MakeError(
          absl::StatusCode::kResourceExhausted,
          absl::StrCat(kept,
                       " bytes of answers are unread, some of them on "
                       "this connection; the limit is ",
                       max_bytes_, ": read them, then retry"),
          {reason::kQueueFull,
           {{"unread_answer_bytes", absl::StrCat(kept)},
            {"limit", absl::StrCat(max_bytes_)}},
           ""});
    } else {
      Put(call, caller, bytes, now);
    }
  }
  for (const auto& ended : cut) ended->Cut();
  return status;
}

void UnreadAnswers::Put(const std::shared_ptr<AnsweringCall>& call,
                        uint64_t caller, int64_t bytes, absl::Time now) {
  Entry& entry = entries_[call.get()];
  entry.call = call;
  entry.caller = caller;
  if (entry.bytes == 0) Touch(&entry, now);
  entry.bytes += bytes;
  bytes_ += bytes;
  if (entry.cut) cut_bytes_ += bytes;
  callers_[caller] += bytes;
}

std::vector<std::shared_ptr<AnsweringCall>> UnreadAnswers::CutOldest(
    int64_t needed, absl::Time now) {
  std::vector<std::shared_ptr<AnsweringCall>> cut;
  while (bytes_ - cut_bytes_ + needed > max_bytes_ && !oldest_.empty()) {
    Entry* const entry = oldest_.begin()->second;
    if (now - entry->since < kPatience) break;
    oldest_.erase(oldest_.begin());
    entry->cut = true;
    cut_bytes_ += entry->bytes;
    ++calls_cut_;
    cut.push_back(entry->call);
  }
  return cut;
}

void UnreadAnswers::Touch(Entry* entry, absl::Time now) {
  if (entry->cut) return;
  oldest_.erase(entry->number);
  entry->number = ++numbers_;
  entry->since = now;
  oldest_[entry->number] = entry;
}

void UnreadAnswers::Take(Entry* entry, int64_t bytes) {
  entry->bytes -= bytes;
  bytes_ -= bytes;
  if (entry->cut) cut_bytes_ -= bytes;
  const auto held = callers_.find(entry->caller);
  held->second -= bytes;
  if (held->second == 0) callers_.erase(held);
}

void UnreadAnswers::Remove(AnsweringCall* call, int64_t bytes, absl::Time now) {
  absl::MutexLock lock(&mu_);
  const auto at = entries_.find(call);
  if (at == entries_.end() || bytes == 0) return;
  Entry& entry = at->second;
  Take(&entry, bytes);
  if (entry.bytes > 0) {
    Touch(&entry, now);
  } else {
    oldest_.erase(entry.number);
  }
}

void UnreadAnswers::RemoveAll(AnsweringCall* call) {
  std::shared_ptr<AnsweringCall> last;  // ends without the lock
  absl::MutexLock lock(&mu_);
  const auto at = entries_.find(call);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  if (entry.bytes > 0) Take(&entry, entry.bytes);
  oldest_.erase(entry.number);
  last = std::move(entry.call);
  entries_.erase(at);
}

int64_t UnreadAnswers::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

int64_t UnreadAnswers::calls_cut() const {
  absl::MutexLock lock(&mu_);
  return calls_cut_;
}

}  // namespace encoderd
