#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "client/calls.h"
#include "client/result_assembler.h"
#include "linserve/v1/embedding.pb.h"

namespace linserve {

// Whether the only sequence of an attempt goes in parts.
bool GoesInParts(const EmbedCall& call, const std::vector<size_t>& indices);

// The messages of a sequence that goes in parts, made one at a time.
class PartRequests {
 public:
  // Sequence `index` of the call. Both must outlive this.
  PartRequests(const EmbedCall& call, size_t index);

  // nullopt after the last one.
  std::optional<v1::EmbedRequest> Next();
  int64_t rows() const { return rows_; }  // in the messages that there were

 private:
  const EmbedCall& call_;
  const size_t index_;
  const Tensor& x_;
  int64_t rows_per_part_ = 0;
  int64_t rows_ = 0;
};

// Tells the call how far the sequences of an attempt are. Thread-safe.
class ProgressReport {
 public:
  // `sent`: all of their rows are on their way.
  ProgressReport(const EmbedCall& call, const std::vector<size_t>& indices, bool sent);

  void Sent(int64_t rows);                  // of the only sequence
  void Received(const ResultChunk& chunk);  // whose index counts the attempt's sequences

 private:
  void Tell(const EmbedProgress& progress);

  const EmbedCall& call_;
  std::mutex mutex_;
  std::vector<EmbedProgress> sequences_;
};

}  // namespace linserve
