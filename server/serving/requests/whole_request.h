#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/threads/mutex.h"
#include "serving/request.h"

namespace linserve {

// Represents a request that is answered as a whole, once all its sequences are computed. The first
// fault of a sequence is the request's, and its sequences that are still queued are dropped.
class WholeRequestState : public RequestState {
 public:
  using RequestState::RequestState;

  bool Abandoned() const final;

 protected:
  void TakeResult(size_t index, absl::StatusOr<ItemResult> result) final;
  absl::Status Prepare(const ServedModel& model, std::vector<absl::StatusOr<Item>>& items) final;

  // Answers with the results of all sequences, in their order, and counts that the request
  // succeeded; an error refuses the request instead.
  // `last` is the timing of the sequence that was computed last.
  virtual absl::Status Answer(std::vector<ItemResult> results, const Timing& last) = 0;

  // Names one of several sequences before its fault.
  virtual std::string NameOf(size_t item) const;

 private:
  mutable Mutex mutex_;
  std::vector<ItemResult> results_ ABSL_GUARDED_BY(mutex_);  // one for each sequence
  size_t unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // answered or refused
};

}  // namespace linserve
