#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/library/calls.h"

namespace linserve {

enum class OutputFormat : uint8_t { kJsonLines, kNpy, kSafetensors };

std::optional<OutputFormat> OutputFormatFromName(std::string_view name);

// Takes the results of a file in the order of its sequences. Not thread-safe.
class ResultWriter {
 public:
  virtual ~ResultWriter() = default;

  // A result that is not OK is written as far as the format can say so.
  virtual absl::Status Write(const SequenceResult& result) = 0;

  // Ends the file. Call it once, after the last result.
  virtual absl::Status Finish() = 0;
};

// Writes one object a line: {"index", "id", "tokens", "queue_ms", "compute_ms", "embedding"}. The
// times are there where the server tells them, which it does not by the Open Inference Protocol.
// The embedding is an array, or an array of rows; with several outputs {"outputs": {name: ...}} is
// in its place. A result that is not OK is {"index", "id", "error": {"code", "message"}}. Numbers
// have as many digits as tell them apart from every other float; what JSON lacks (NaN) is null.
std::unique_ptr<ResultWriter> MakeJsonLinesWriter(std::ostream& stream);

// Writes one array of [sequences, ...]: all results need one output of one shape. The row of a
// result that is not OK is NaN, so that row i belongs to sequence i.
std::unique_ptr<ResultWriter> MakeNpyWriter(std::string path);

// Writes one tensor a result, named by its id, or ID.OUTPUT if there are several outputs; results
// that are not OK are left out. An id that is taken already gets the sequence's place: "ID#7".
std::unique_ptr<ResultWriter> MakeSafetensorsWriter(std::string path);

// Returns OK if a file can be made there, or written to, so that long work does not end in vain; ""
// is no file. NOT_FOUND says why not.
absl::Status CheckWritable(const std::string& path);

// Writes {"code": "INVALID_ARGUMENT", "message": "..."}.
std::string ErrorJson(const absl::Status& status);

}  // namespace linserve
