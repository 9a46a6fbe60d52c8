#include "rpc/embedding/result_chunker.h"

#include <algorithm>
#include <utility>

#include "rpc/calls/grpc_status.h"
#include "rpc/embedding/convert.h"
#include "rpc/messages/wire.h"

namespace linserve {

ResultChunker::ResultChunker(const ChunkOptions& options, size_t index, std::string sequence_id,
                             absl::StatusOr<ItemResult> result, std::shared_ptr<void> keep_alive)
    : options_(options),
      index_(index),
      sequence_id_(std::move(sequence_id)),
      result_(std::move(result)),
      keep_alive_(std::move(keep_alive)) {}

std::unique_ptr<ResultChunker> ResultChunker::RequestFailed(const std::string& request_id,
                                                            const absl::Status& status,
                                                            std::shared_ptr<void> keep_alive) {
  ChunkOptions options;
  options.request_id = request_id;
  auto chunker = std::make_unique<ResultChunker>(options, 0, "", status, std::move(keep_alive));
  chunker->request_failed_ = true;
  return chunker;
}

bool ResultChunker::Next(WireMessage& wire) {
  v1::EmbedResponse message;
  message.set_request_id(options_.request_id);
  message.set_request_failed(request_failed_);
  message.set_index(static_cast<uint32_t>(index_));
  message.set_sequence_id(sequence_id_);
  if (!result_.ok()) {
    AddFault(message);
    wire.Add(message);
  } else if (!result_->outputs.empty()) {
    WireMessage rows = ToWire(NextRows(message));
    wire.Add(message);
    wire.AddMessage(v1::EmbedResponse::kRowsFieldNumber, std::move(rows));
  } else {
    AddSaved(message);
    wire.Add(message);
  }
  return message.last();
}

void ResultChunker::AddFault(v1::EmbedResponse& message) const {
  message.set_code(static_cast<int32_t>(result_.status().code()));
  message.set_message(MessageOf(result_.status()));
  message.set_last(true);
  if (const auto position = ResumePosition(result_.status())) {
    message.mutable_session()->set_position(static_cast<uint64_t>(*position));
  }
}

// Adds the next piece of the saved session, which follows the rows.
void ResultChunker::AddSaved(v1::EmbedResponse& message) {
  message.set_tokens(static_cast<uint64_t>(result_->tokens));
  const auto most = static_cast<size_t>(options_.chunk_bytes);
  std::string chunk = result_->session.substr(saved_sent_, most);
  saved_sent_ += chunk.size();
  message.mutable_session()->set_state(std::move(chunk));
  if (saved_sent_ == result_->session.size()) End(message);
}

void ResultChunker::End(v1::EmbedResponse& message) const {
  message.set_last(true);
  ToMessage(result_->timing, *message.mutable_timing());
  if (result_->position == 0) return;
  message.mutable_session()->set_position(static_cast<uint64_t>(result_->position));
}

Tensor ResultChunker::NextRows(v1::EmbedResponse& message) {
  message.set_tokens(static_cast<uint64_t>(result_->tokens));
  const auto output = result_->outputs.begin();
  const Tensor tensor = output->second;
  message.set_output(output->first);
  // A pooled vector is one row without a row axis.
  const bool pooled = tensor.shape().size() < 2;
  const int64_t rows = pooled ? 1 : tensor.shape()[0];
  message.set_total_rows(static_cast<uint64_t>(rows));
  message.set_row_offset(static_cast<uint64_t>(row_));
  const int64_t row_bytes =
      std::max<int64_t>(1, static_cast<int64_t>(tensor.byte_size()) / std::max<int64_t>(1, rows));
  int64_t count = options_.rows_per_chunk;
  if (count == 0) count = options_.chunk_bytes / row_bytes;
  count = std::max<int64_t>(1, std::min(count, options_.max_bytes / row_bytes));
  const int64_t end = std::min(rows, row_ + count);
  Tensor chunk = pooled ? tensor : tensor.Rows(row_, end);
  row_ = end;
  if (row_ == rows) {
    result_->outputs.erase(output);
    row_ = 0;
  }
  if (result_->outputs.empty() && result_->session.empty()) End(message);
  return chunk;
}

}  // namespace linserve
