#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/calls.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Holds one message of a result: some rows of one output, or the sequence's end.
struct ResultChunk {
  size_t index = 0;
  std::string id;
  absl::Status status;
  std::string output;  // empty: the message carries no rows
  int64_t row_offset = 0;
  int64_t total_rows = 0;
  Tensor rows;
  bool last = false;
  int64_t tokens = 0;
  Timing timing;
  int64_t position = 0;                    // with the last message of a chunk of a session
  std::string session{};                   // a piece of the saved session
  std::optional<ItemProgress> progress{};  // the message has nothing else then
};

// Puts the results of one request together from their chunks, which arrive in any order of the
// sequences but in order within an output. Not thread-safe.
class ResultAssembler {
 public:
  explicit ResultAssembler(size_t sequences);

  // Adds a chunk, and returns the sequence's result if this was its last one. INTERNAL means that
  // the chunk cannot belong to this request: the server and this client do not understand each
  // other.
  absl::StatusOr<std::optional<SequenceResult>> Add(ResultChunk chunk);

  bool complete() const { return answered_ == partial_.size(); }
  std::vector<size_t> Unanswered() const;

 private:
  struct PartialOutput {
    int64_t total_rows = 0;
    int64_t received_rows = 0;
    std::vector<Tensor> pieces;
  };
  struct PartialResult {
    bool answered = false;
    std::map<std::string, PartialOutput> outputs;
    std::string session;
  };

  static absl::Status AddRows(const ResultChunk& chunk, PartialOutput& output);
  static absl::StatusOr<TensorMap> Join(size_t index,
                                        const std::map<std::string, PartialOutput>& outputs);

  std::vector<PartialResult> partial_;
  size_t answered_ = 0;
};

}  // namespace linserve
