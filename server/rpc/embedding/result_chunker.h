#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "linserve/v1/embedding.pb.h"
#include "rpc/calls/answer.h"

namespace linserve {

// Says how the results of one request become messages.
struct ChunkOptions {
  std::string request_id;
  int64_t rows_per_chunk = 0;  // 0: as many as make about `chunk_bytes`
  int64_t chunk_bytes = 1 << 20;
  int64_t max_bytes = 64 << 20;  // bytes of one message's rows, whatever was asked for
  bool together = false;         // with other results in one message
};

// Sends the answer of one sequence, or of a request that failed as a whole. Keeps `keep_alive`
// until it is destroyed.
class ResultChunker : public Answer {
 public:
  ResultChunker(const ChunkOptions& options, size_t index, std::string sequence_id,
                absl::StatusOr<ItemResult> result, std::shared_ptr<void> keep_alive);

  // Answers a request that failed as a whole.
  static std::unique_ptr<ResultChunker> RequestFailed(const std::string& request_id,
                                                      const absl::Status& status,
                                                      std::shared_ptr<void> keep_alive);

  // Makes the next EmbedResponse; the last one has `last` set.
  bool Next(WireMessage& wire) override;

  int field_of_others() const override {
    return options_.together ? v1::EmbedResponse::kOthersFieldNumber : 0;
  }

 private:
  // Fills in what belongs to the next rows, and returns them.
  Tensor NextRows(v1::EmbedResponse& message);
  void AddSaved(v1::EmbedResponse& message);
  void AddFault(v1::EmbedResponse& message) const;
  void End(v1::EmbedResponse& message) const;

  ChunkOptions options_;
  size_t index_;
  std::string sequence_id_;
  absl::StatusOr<ItemResult> result_;
  std::shared_ptr<void> keep_alive_;
  bool request_failed_ = false;
  int64_t row_ = 0;        // next row of the first output that still has any
  size_t saved_sent_ = 0;  // bytes of the saved session that were sent
};

}  // namespace linserve
