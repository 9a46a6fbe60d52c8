#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "client/calls.h"
#include "client/embed_job.h"
#include "client/embedding_client.h"
#include "client/inputs.h"

namespace linserve {

struct SessionJobOptions {
  std::string model;
  int64_t version = 0;
  OutputOptions options;  // pooling: none, or the last row
  Priority priority = Priority::kNormal;
  int64_t chunk_rows = 1024;
  Signature signature;  // of the model: which inputs come in chunks
  std::string state;    // of a saved session that the sequence goes on from
  bool save = false;
};

// Of what comes in chunks.
int64_t TotalRows(const Signature& signature, const InputSequences& sequences);

// Sends the sequences one after another, each chunk by chunk as a session of its own, which ends
// with it. What a server has forgotten is sent again. Hands over a result for each: the rows of all
// its chunks joined, with the saved session. `on_rows` is told after each chunk how many rows of
// all have been answered.
void RunSessionJob(EmbeddingClient& client, const SessionJobOptions& options,
                   const InputSequences& sequences, const std::function<void(int64_t)>& on_rows,
                   const std::function<void(const JobResult&)>& on_result);

}  // namespace linserve
