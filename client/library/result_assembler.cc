#include "client/library/result_assembler.h"

#include <algorithm>
#include <utility>

#include "core/tensor/row_scale.h"
#include "core/tensor/stacking.h"

namespace linserve {
namespace {

absl::Status Misunderstood(size_t index, const std::string& what) {
  return absl::InternalError("the server's answer for sequence " + std::to_string(index) +
                             " makes no sense: " + what);
}

bool SameRowType(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape().size() == b.shape().size() &&
         std::equal(a.shape().begin() + 1, a.shape().end(), b.shape().begin() + 1);
}

}  // namespace

ResultAssembler::ResultAssembler(size_t sequences) : partial_(sequences) {}

absl::StatusOr<std::optional<SequenceResult>> ResultAssembler::Add(ResultChunk chunk) {
  if (chunk.index >= partial_.size()) {
    return Misunderstood(chunk.index,
                         "the request has only " + std::to_string(partial_.size()) + " sequences");
  }
  if (chunk.progress) return std::optional<SequenceResult>();
  PartialResult& partial = partial_[chunk.index];
  if (partial.answered) return Misunderstood(chunk.index, "more follows after its last message");
  if (chunk.status.ok() && !chunk.output.empty()) {
    if (auto status = AddRows(chunk, partial.outputs[chunk.output]); !status.ok()) return status;
  }
  partial.session += chunk.session;
  if (!chunk.last && chunk.status.ok()) return std::optional<SequenceResult>();

  SequenceResult result;
  result.index = chunk.index;
  result.id = std::move(chunk.id);
  result.status = std::move(chunk.status);
  result.tokens = chunk.tokens;
  result.timing = chunk.timing;
  result.position = chunk.position;
  result.session = std::move(partial.session);
  if (result.status.ok()) {
    auto outputs = Join(chunk.index, partial.outputs);
    if (!outputs.ok()) return outputs.status();
    result.outputs = *std::move(outputs);
  }
  partial.outputs.clear();
  partial.answered = true;
  ++answered_;
  return std::optional<SequenceResult>(std::move(result));
}

absl::Status ResultAssembler::AddRows(const ResultChunk& chunk, PartialOutput& output) {
  // A pooled vector counts as one row and has no axis of rows.
  const bool whole = chunk.total_rows <= 1;
  if (!whole && chunk.rows.shape().empty()) {
    return Misunderstood(chunk.index, "output '" + chunk.output + "' has no axis of rows");
  }
  const int64_t rows = whole ? chunk.total_rows : chunk.rows.shape()[0];
  if (output.pieces.empty()) output.total_rows = chunk.total_rows;
  const bool expected = chunk.total_rows == output.total_rows &&
                        chunk.row_offset == output.received_rows &&
                        rows <= output.total_rows - output.received_rows;
  if (!expected || (whole && !output.pieces.empty())) {
    return Misunderstood(chunk.index, "output '" + chunk.output + "' has rows " +
                                          std::to_string(chunk.row_offset) + " to " +
                                          std::to_string(chunk.row_offset + rows) + " of " +
                                          std::to_string(chunk.total_rows) + " after " +
                                          std::to_string(output.received_rows) + " of " +
                                          std::to_string(output.total_rows));
  }
  if (!output.pieces.empty() && !SameRowType(output.pieces.front(), chunk.rows)) {
    return Misunderstood(chunk.index,
                         "the chunks of output '" + chunk.output +
                             "' are of unequal types: " + ToString(output.pieces.front().shape()) +
                             " and " + ToString(chunk.rows.shape()));
  }
  output.received_rows += rows;
  output.pieces.push_back(chunk.rows);
  return absl::OkStatus();
}

absl::StatusOr<TensorMap> ResultAssembler::Join(
    size_t index, const std::map<std::string, PartialOutput>& outputs) {
  TensorMap joined;
  for (const auto& [name, output] : outputs) {
    if (output.received_rows != output.total_rows) {
      return Misunderstood(index, "it ended after " + std::to_string(output.received_rows) +
                                      " of " + std::to_string(output.total_rows) +
                                      " rows of output '" + name + "'");
    }
    joined[name] = Concatenate(output.pieces);
  }
  if (auto status = Dequantize(joined); !status.ok()) {
    return Misunderstood(index, std::string(status.message()));
  }
  return joined;
}

std::vector<size_t> ResultAssembler::Unanswered() const {
  std::vector<size_t> indices;
  for (size_t i = 0; i < partial_.size(); ++i) {
    if (!partial_[i].answered) indices.push_back(i);
  }
  return indices;
}

}  // namespace linserve
