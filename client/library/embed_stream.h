#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/library/calls.h"

namespace linserve {

// Tells the end of one request on a stream. `status` is the request's as a whole; if it is OK,
// `results` holds one result for each sequence, in their order.
struct StreamAnswer {
  std::string request_id;
  absl::Status status;
  std::vector<SequenceResult> results;
};

// Keeps many requests in flight on one bidirectional stream, answered in the order in which they
// finish. Thread-safe. Callbacks run on a thread of gRPC, which they must not block; they may call
// Send().
class EmbedStream {
 public:
  using Callback = std::function<void(StreamAnswer)>;

  // Cancels what is still in flight and waits for its end. It must not run in a callback.
  virtual ~EmbedStream() = default;

  // Queues the request, never blocking; what waits to be written is not limited. `done` is called
  // exactly once if OK is returned, with the stream's own status if it breaks before the answer.
  // Returns INVALID_ARGUMENT if a request of that id is in flight, or the stream's status if it is
  // over.
  virtual absl::Status Send(const EmbedCall& call, Callback done) = 0;

  // Says that there are no more requests, waits for all answers and returns the stream's status. It
  // must not be called in a callback.
  virtual absl::Status Finish() = 0;

  // Ends requests in flight with CANCELLED.
  virtual void Cancel() = 0;
};

}  // namespace linserve
