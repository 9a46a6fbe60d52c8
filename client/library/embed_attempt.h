#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "client/library/calls.h"
#include "client/library/result_assembler.h"
#include "linserve/v1/embedding.grpc.pb.h"

namespace linserve {

// Collects the results of one Embed call over all of its attempts.
class ResultCollector {
 public:
  ResultCollector(size_t sequences, const std::function<void(SequenceResult)>& on_result);

  // Returns the sequences that the next attempt sends.
  const std::vector<size_t>& pending() const { return pending_; }

  // Takes a result of the attempt that sent pending(). One that is UNAVAILABLE waits for a better
  // answer.
  void Take(SequenceResult result);

  // Makes pending() what the ended attempt has left over.
  absl::Status EndAttempt(const absl::Status& status, const ResultAssembler& assembler);

  void ForgetUnavailable() { unavailable_.clear(); }

  // Called after the last attempt, when no better answer comes. Returns OK if every sequence has a
  // result.
  absl::Status End(const absl::Status& status);

 private:
  const std::function<void(SequenceResult)>& on_result_;
  std::vector<size_t> pending_;
  std::vector<SequenceResult> unavailable_;
  size_t unanswered_ = 0;
};

// Knows when something was last sent or heard by any of a client's calls in chunks: calls that wait
// for their turn hear of it by the one that is being computed. Thread-safe.
class Activity {
 public:
  using Clock = std::chrono::steady_clock;

  void Note() { last_ = Clock::now().time_since_epoch().count(); }
  Clock::time_point last() const { return Clock::time_point(Clock::duration(last_.load())); }

 private:
  std::atomic<Clock::rep> last_ = Clock::now().time_since_epoch().count();
};

// Sends collector.pending() once, in chunks where the call says so, and waits for the end. Returns
// DEADLINE_EXCEEDED after the deadline or, for a sequence in chunks, once there has been no
// activity for `pause`.
absl::Status AttemptEmbed(v1::EmbeddingService::Stub& stub, const EmbedCall& call,
                          std::chrono::system_clock::time_point deadline,
                          std::chrono::milliseconds pause, Activity& activity,
                          ResultCollector& collector);

}  // namespace linserve
