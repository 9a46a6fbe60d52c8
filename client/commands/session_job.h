#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "client/commands/embed_job.h"
#include "client/files/inputs.h"
#include "client/library/calls.h"
#include "client/library/embedding_client.h"

namespace linserve {

struct SessionJobOptions {
  std::string model;
  int64_t version = 0;
  OutputOptions options;  // pooling: none, or the last row
  Priority priority = Priority::kNormal;
  int64_t chunk_rows = 1024;
  Signature signature;  // the model's, which says which inputs come in chunks
  std::string state;    // the saved session that the sequence goes on from
  bool save = false;
};

// Counts the rows that come in chunks.
int64_t TotalRows(const Signature& signature, const InputSequences& sequences);

// Sends the sequences one after another, each chunk by chunk as a session of its own, which ends
// with the sequence. What a server has forgotten is sent again. Hands over a result for each
// sequence: the rows of all its chunks joined, with the saved session. After each chunk `on_rows`
// is told how many rows of all have been answered.
void RunSessionJob(EmbeddingClient& client, const SessionJobOptions& options,
                   const InputSequences& sequences, const std::function<void(int64_t)>& on_rows,
                   const std::function<void(const JobResult&)>& on_result);

}  // namespace linserve
