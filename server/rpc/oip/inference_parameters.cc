#include "rpc/oip/inference_parameters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/sequence/pooling.h"
#include "core/strings/quote.h"
#include "core/tensor/row_scale.h"
#include "rpc/oip/inference_tensors.h"

namespace linserve {
namespace {

using inference::InferParameter;
using Parameters = InferParameters;

absl::Status WrongParameter(const std::string& name, const std::string& expected) {
  return absl::InvalidArgumentError("parameter " + Quoted(name) + ": expected " + expected);
}

const InferParameter* Find(const Parameters& parameters, const std::string& name) {
  const auto parameter = parameters.find(name);
  return parameter == parameters.end() ? nullptr : &parameter->second;
}

absl::Status ReadPooling(const Parameters& parameters, OutputOptions& options) {
  const InferParameter* parameter = Find(parameters, "pooling");
  if (parameter == nullptr) return absl::OkStatus();
  const auto pooling = PoolingFromName(parameter->string_param());
  if (!pooling) return WrongParameter("pooling", "'none', 'mean', 'cls', 'last' or 'max'");
  options.pooling = *pooling;
  return absl::OkStatus();
}

absl::Status ReadDType(const Parameters& parameters, OutputOptions& options) {
  const InferParameter* parameter = Find(parameters, "dtype");
  if (parameter == nullptr) return absl::OkStatus();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8}) {
    if (parameter->string_param() != Datatype(dtype)) continue;
    options.dtype = dtype;
    return absl::OkStatus();
  }
  return WrongParameter("dtype", "'FP32', 'FP16', 'BF16' or 'INT8'");
}

// Reads a number that clients send in either integer type.
std::optional<uint64_t> Count(const InferParameter& parameter) {
  if (parameter.has_uint64_param()) return parameter.uint64_param();
  if (!parameter.has_int64_param() || parameter.int64_param() < 0) return std::nullopt;
  return static_cast<uint64_t>(parameter.int64_param());
}

absl::Status ReadTimeout(const Parameters& parameters, InferOptions& options) {
  const InferParameter* parameter = Find(parameters, "timeout");
  if (parameter == nullptr) return absl::OkStatus();
  constexpr uint64_t kLongest = uint64_t{365} * 24 * 3600 * 1000000;  // past it, no timeout
  const auto microseconds = Count(*parameter);
  if (!microseconds) return WrongParameter("timeout", "microseconds, 0 for none");
  if (*microseconds > 0 && *microseconds < kLongest) {
    options.timeout = std::chrono::microseconds(*microseconds);
  }
  return absl::OkStatus();
}

absl::Status ReadPriority(const Parameters& parameters, InferOptions& options) {
  const InferParameter* parameter = Find(parameters, "priority");
  if (parameter == nullptr) return absl::OkStatus();
  const auto level = Count(*parameter);
  if (!level)
    return WrongParameter("priority", "a number: 1 goes first, 3 and more last, 0 is the default");
  options.priority = PriorityFromLevel(*level);
  return absl::OkStatus();
}

absl::Status ReadChunkRows(const Parameters& parameters, InferOptions& options) {
  const InferParameter* parameter = Find(parameters, "chunk_rows");
  if (parameter == nullptr) return absl::OkStatus();
  const uint64_t rows = Count(*parameter).value_or(0);
  if (rows == 0) return WrongParameter("chunk_rows", "an integer of 1 or more");
  options.chunk_rows = static_cast<int64_t>(std::min<uint64_t>(rows, INT64_MAX));
  return absl::OkStatus();
}

absl::Status ReadTruncation(const Parameters& parameters, InferOptions& options) {
  const InferParameter* parameter = Find(parameters, "truncation");
  if (parameter == nullptr) return absl::OkStatus();
  const auto truncation = TruncationFromName(parameter->string_param());
  if (!truncation) return WrongParameter("truncation", "'none', 'left' or 'right'");
  options.truncation = truncation;
  return absl::OkStatus();
}

absl::Status ReadPromptName(const Parameters& parameters, InferOptions& options) {
  const InferParameter* parameter = Find(parameters, "prompt_name");
  if (parameter == nullptr) return absl::OkStatus();
  if (!parameter->has_string_param()) {
    return WrongParameter("prompt_name", "the name of one of the model's prompts");
  }
  options.prompt_name = parameter->string_param();
  return absl::OkStatus();
}

// Returns the correlation id. An id of 0, or an empty one, means that there is no sequence.
absl::StatusOr<std::string> SequenceId(const Parameters& parameters) {
  const InferParameter* id = Find(parameters, "sequence_id");
  if (id == nullptr) return "";
  if (id->has_string_param()) return id->string_param();
  if (id->has_uint64_param() && id->uint64_param() != 0) return std::to_string(id->uint64_param());
  if (id->has_int64_param() && id->int64_param() != 0) return std::to_string(id->int64_param());
  if (id->has_uint64_param() || id->has_int64_param()) return "";
  return WrongParameter("sequence_id", "a text or a whole number, 0 for none");
}

absl::Status ReadSession(const Parameters& parameters, InferOptions& options) {
  const auto id = SequenceId(parameters);
  if (!id.ok()) return id.status();
  bool start = false;
  bool end = false;
  for (const absl::Status& status :
       {ReadFlag(parameters, "sequence_start", start), ReadFlag(parameters, "sequence_end", end)}) {
    if (!status.ok()) return status;
  }
  if (id->empty()) return absl::OkStatus();
  if (absl::Status status = CheckSessionId(*id); !status.ok()) return status;
  auto chunk = std::make_shared<SessionChunk>();
  chunk->id = *id;
  chunk->start = start;
  chunk->end = end;
  if (const InferParameter* given = Find(parameters, kSequencePosition)) {
    const auto position = Count(*given);
    if (!position) return WrongParameter(kSequencePosition, "how many rows came before");
    chunk->position = static_cast<int64_t>(std::min<uint64_t>(*position, INT64_MAX));
  }
  options.chunk = std::move(chunk);
  return absl::OkStatus();
}

absl::Status ReadOutputs(const inference::ModelInferRequest& message, OutputOptions& options) {
  for (const auto& output : message.outputs()) {
    if (output.parameters().contains("shared_memory_region")) {
      return absl::UnimplementedError("shared memory is not supported for output " +
                                      Quoted(output.name()));
    }
    const InferParameter* classes = Find(output.parameters(), "classification");
    if (classes != nullptr && classes->int64_param() != 0) {
      return absl::UnimplementedError("classification is not supported for output " +
                                      Quoted(output.name()));
    }
    options.outputs.push_back(output.name());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadFlag(const Parameters& parameters, const std::string& name, bool& flag) {
  const InferParameter* parameter = Find(parameters, name);
  if (parameter == nullptr) return absl::OkStatus();
  if (!parameter->has_bool_param()) return WrongParameter(name, "a bool");
  flag = parameter->bool_param();
  return absl::OkStatus();
}

absl::StatusOr<InferOptions> ReadInferOptions(const inference::ModelInferRequest& message,
                                              Pooling fallback, bool normalized) {
  InferOptions options;
  options.output.pooling = fallback;
  const Parameters& parameters = message.parameters();
  for (const absl::Status& status :
       {ReadSession(parameters, options), ReadPooling(parameters, options.output),
        ReadFlag(parameters, "normalize", options.output.normalize),
        ReadDType(parameters, options.output), ReadTimeout(parameters, options),
        ReadPriority(parameters, options), ReadChunkRows(parameters, options),
        ReadTruncation(parameters, options), ReadPromptName(parameters, options),
        ReadOutputs(message, options.output)}) {
    if (!status.ok()) return status;
  }
  if (!parameters.contains("normalize")) {
    options.output.normalize = normalized && options.output.pooling != Pooling::kNone;
  }
  if (options.output.dtype == DType::kI8) DropScales(options.output.outputs);
  return options;
}

}  // namespace linserve
