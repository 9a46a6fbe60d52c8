#include "client/library/embed_chunks.h"

#include <algorithm>

#include "client/library/wire.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

int64_t RowsOf(const NamedSequence& sequence) {
  const auto x = sequence.inputs.find("x");
  return x == sequence.inputs.end() || x->second.shape().empty() ? 0 : x->second.shape()[0];
}

}  // namespace

bool GoesInChunks(const EmbedCall& call, const std::vector<size_t>& indices) {
  if (call.chunk_bytes == 0 || indices.size() != 1) return false;
  const NamedSequence& sequence = call.sequences[indices[0]];
  return !sequence.session && RowsOf(sequence) > 1 &&
         sequence.inputs.at("x").byte_size() > call.chunk_bytes;
}

ChunkRequests::ChunkRequests(const EmbedCall& call, size_t index)
    : call_(call), index_(index), x_(call.sequences[index].inputs.at("x")) {
  const int64_t row_bytes = static_cast<int64_t>(x_.byte_size()) / x_.shape()[0];
  rows_per_chunk_ = std::max<int64_t>(
      1, static_cast<int64_t>(call.chunk_bytes) / std::max<int64_t>(row_bytes, 1));
}

std::optional<v1::EmbedRequest> ChunkRequests::Next() {
  const int64_t total = x_.shape()[0];
  if (rows_ == total) return std::nullopt;
  const int64_t end = std::min(total, rows_ + rows_per_chunk_);
  const bool first = rows_ == 0;
  EmbedCall chunk;
  if (first) chunk = call_;
  chunk.sequences = {NamedSequence{.id = "", .inputs = {}}};
  NamedSequence& sequence = chunk.sequences[0];
  if (first) sequence = call_.sequences[index_];
  sequence.inputs["x"] = x_.Rows(rows_, end);
  v1::EmbedRequest request = EncodeRequest(chunk);
  if (!first) {
    request.clear_options();
    request.clear_priority();
  }
  if (first) request.mutable_options()->set_progress(true);  // progress is a sign of life, too
  request.set_request_id("1");                               // the request is alone on its stream
  v1::Sequence& encoded = *request.mutable_sequences(0);
  encoded.set_total_rows(static_cast<uint64_t>(total));
  encoded.set_first_row(static_cast<uint64_t>(rows_));
  rows_ = end;
  return request;
}

ProgressReport::ProgressReport(const EmbedCall& call, const std::vector<size_t>& indices, bool sent)
    : call_(call) {
  for (const size_t index : indices) {
    const int64_t rows = RowsOf(call.sequences[index]);
    sequences_.push_back({.index = index, .rows = rows, .rows_sent = sent ? rows : 0});
  }
}

void ProgressReport::Sent(int64_t rows) {
  const MutexLock lock(mutex_);
  sequences_[0].rows_sent = rows;
  Tell(sequences_[0]);
}

void ProgressReport::Received(const ResultChunk& chunk) {
  const MutexLock lock(mutex_);
  if (chunk.index >= sequences_.size()) return;
  EmbedProgress& progress = sequences_[chunk.index];
  if (chunk.progress) {
    progress.computed = chunk.progress;
  } else if (chunk.output.empty() || chunk.rows.shape().empty()) {
    return;
  } else {
    progress.rows_received = chunk.row_offset + chunk.rows.shape()[0];
  }
  Tell(progress);
}

void ProgressReport::Tell(const EmbedProgress& progress) {
  if (call_.on_progress) call_.on_progress(progress);
}

}  // namespace linserve
