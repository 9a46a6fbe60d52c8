#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client/library/calls.h"
#include "client/library/result_assembler.h"
#include "core/threads/mutex.h"
#include "linserve/v1/embedding.pb.h"

namespace linserve {

// Returns whether the only sequence of an attempt goes in chunks.
bool GoesInChunks(const EmbedCall& call, const std::vector<size_t>& indices);

// Makes the messages of a sequence that goes in chunks, one at a time.
class ChunkRequests {
 public:
  // Begins with sequence `index` of the call, which must outlive this.
  ChunkRequests(const EmbedCall& call, size_t index);

  // Returns the next message; nullopt after the last one.
  std::optional<v1::EmbedRequest> Next();
  int64_t rows() const { return rows_; }  // in the messages so far

 private:
  const EmbedCall& call_;
  const size_t index_;
  const Tensor& x_;
  int64_t rows_per_chunk_ = 0;
  int64_t rows_ = 0;
};

// Tells the call how far the sequences of an attempt are. Thread-safe.
class ProgressReport {
 public:
  // `sent` says that all of their rows are on their way.
  ProgressReport(const EmbedCall& call, const std::vector<size_t>& indices, bool sent);

  void Sent(int64_t rows);                  // for the only sequence
  void Received(const ResultChunk& chunk);  // its index counts the attempt's sequences

 private:
  void Tell(const EmbedProgress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EmbedCall& call_;
  Mutex mutex_;
  std::vector<EmbedProgress> sequences_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
