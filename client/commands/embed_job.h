#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/files/inputs.h"
#include "client/library/calls.h"
#include "client/library/embedding_client.h"

namespace linserve {

struct EmbedJobOptions {
  std::string model;
  int64_t version = 0;
  OutputOptions options;
  Priority priority = Priority::kNormal;
  std::optional<Truncation> truncation{};  // for texts; nullopt: as the model's option says
  std::string prompt_name{};               // of the model's, before each text; "": its default one
  size_t batch = 64;                       // sequences of one request at most
  size_t batch_bytes = 3 * 1024 * 1024;    // of one request, unless one sequence is larger
  size_t in_flight = 4;                    // requests at a time
  // A sequence whose `x` is larger goes in chunks of so many bytes, if the first axis of `x` is one
  // of rows. 0: it goes as a whole.
  size_t chunk_bytes = 2 * 1024 * 1024;
  // Called for sequences in chunks as EmbedCall::on_progress is, but `index` counts the sequences
  // of the job. There is one call at a time.
  std::function<void(const EmbedProgress&)> on_progress{};
  // All sequences go in one request, whatever the other options say. This is for models that mix
  // the sequences of a call (Signature::request_is_unit).
  bool one_request = false;
};

// Holds consecutive sequences [begin, end) that go into one request.
using Group = std::pair<size_t, size_t>;

// Cuts sequences of these sizes in bytes; every sequence is in exactly one group, in order.
std::vector<Group> CutIntoGroups(const std::vector<size_t>& sizes, size_t max_sequences,
                                 size_t max_bytes);

// Holds a result, and how long after its request was sent it was there.
struct JobResult {
  SequenceResult result;
  std::chrono::nanoseconds latency{0};
};

// Embeds all sequences and hands over one result for each, in their order, one at a time, from
// several threads. Sequences that are no input to begin with keep their status. Once the server is
// UNAVAILABLE after all retries, what is left is not tried any more.
void RunEmbedJob(EmbeddingClient& client, const EmbedJobOptions& options,
                 const InputSequences& sequences,
                 const std::function<void(const JobResult&)>& on_result);

}  // namespace linserve
