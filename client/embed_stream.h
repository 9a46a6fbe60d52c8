#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/calls.h"

namespace linserve {

// The end of one request on a stream. `status` is the request's as a whole; if it is OK, `results`
// holds one result for each sequence, in their order.
struct StreamAnswer {
  std::string request_id;
  absl::Status status;
  std::vector<SequenceResult> results;
};

// Many requests in flight on one bidirectional stream, answered in the order in which they finish.
// Thread-safe. Callbacks run on a thread of gRPC, which they must not block; they may call Send().
class EmbedStream {
 public:
  using Callback = std::function<void(StreamAnswer)>;

  // Cancels what is still in flight and waits for its end. Never from a callback.
  virtual ~EmbedStream() = default;

  // Queues the request, never blocking; what waits to be written is not limited. `done` is called
  // exactly once if OK is returned, with the stream's own status if it breaks before the answer.
  // INVALID_ARGUMENT if a request of that id is in flight, else the stream's status if it is over.
  virtual absl::Status Send(const EmbedCall& call, Callback done) = 0;

  // No more requests: waits for all answers and returns the stream's status. Not from a callback.
  virtual absl::Status Finish() = 0;

  // Requests in flight end with CANCELLED.
  virtual void Cancel() = 0;
};

}  // namespace linserve
