#include "client/library/wire.h"

#include <google/protobuf/any.pb.h>

#include <charconv>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/status/retry_delay.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace linserve {
namespace {

// The plain enumerations count from 0, those of the wire from 1, in the same order.
static_assert(static_cast<int>(DType::kBool) + 1 == v1::DATA_TYPE_BOOL);
static_assert(static_cast<int>(DType::kF64) + 1 == v1::DATA_TYPE_F64);
static_assert(static_cast<int>(Pooling::kNone) + 1 == v1::POOLING_NONE);
static_assert(static_cast<int>(Pooling::kMax) + 1 == v1::POOLING_MAX);

v1::DataType EncodeDType(DType dtype) {
  return static_cast<v1::DataType>(static_cast<int>(dtype) + 1);
}

void EncodeTensor(const Tensor& tensor, v1::Tensor* wire) {
  wire->set_dtype(EncodeDType(tensor.dtype()));
  wire->mutable_shape()->Add(tensor.shape().begin(), tensor.shape().end());
  if (tensor.byte_size() > 0) wire->set_data(tensor.bytes(), tensor.byte_size());
}

// Sets the token ids and returns true if they all fit. No ids at all would read as no input.
bool EncodeTokenIds(const Tensor& x, v1::Sequence* wire) {
  if (!IsInteger(x.dtype()) || x.shape().size() != 1 || x.elements() == 0) return false;
  std::vector<int64_t> ids(static_cast<size_t>(x.elements()));
  ConvertToInt64(x.dtype(), x.bytes(), x.elements(), ids.data());
  for (int64_t id : ids) {
    if (id < 0 || id > std::numeric_limits<uint32_t>::max()) return false;
  }
  wire->mutable_token_ids()->Reserve(static_cast<int>(ids.size()));
  for (int64_t id : ids) wire->add_token_ids(static_cast<uint32_t>(id));
  return true;
}

void EncodeSession(const SessionChunk& chunk, v1::SessionChunk* wire) {
  wire->set_id(chunk.id);
  wire->set_start(chunk.start);
  wire->set_end(chunk.end);
  wire->set_save(chunk.save);
  if (chunk.position) wire->set_position(static_cast<uint64_t>(*chunk.position));
  wire->set_state(chunk.state);
}

void EncodeSequence(const NamedSequence& sequence, v1::Sequence* wire) {
  wire->set_id(sequence.id);
  if (sequence.text) wire->set_text(*sequence.text);
  if (sequence.session) EncodeSession(*sequence.session, wire->mutable_session());
  for (const auto& [name, tensor] : sequence.inputs) {
    if (name != "x") {
      EncodeTensor(tensor, &(*wire->mutable_inputs())[name]);
    } else if (!EncodeTokenIds(tensor, wire)) {
      EncodeTensor(tensor, wire->mutable_x());
    }
  }
}

v1::Truncation EncodeTruncation(Truncation truncation) {
  if (truncation == Truncation::kNone) return v1::TRUNCATION_NONE;
  return truncation == Truncation::kLeft ? v1::TRUNCATION_LEFT : v1::TRUNCATION_RIGHT;
}

void EncodeOptions(const EmbedCall& call, v1::EmbedOptions* wire) {
  for (const std::string& output : call.options.outputs) wire->add_outputs(output);
  wire->set_pooling(static_cast<v1::Pooling>(static_cast<int>(call.options.pooling) + 1));
  wire->set_normalize(call.options.normalize);
  wire->set_dtype(EncodeDType(call.options.dtype));
  wire->set_rows_per_chunk(call.rows_per_chunk);
  if (call.truncation) wire->set_truncation(EncodeTruncation(*call.truncation));
  wire->set_prompt_name(call.prompt_name);
  wire->set_progress(call.on_progress != nullptr);
  wire->set_together(true);
}

// Returns the bytes that a tensor of these axes has; nullopt if the number is negative or beyond
// counting.
std::optional<size_t> ByteCount(const Shape& shape, DType dtype) {
  size_t bytes = ByteSize(dtype);
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

absl::StatusOr<Tensor> DecodeTensor(v1::Tensor&& wire) {
  if (wire.dtype() <= v1::DATA_TYPE_UNSPECIFIED || wire.dtype() > v1::DATA_TYPE_F64) {
    return absl::InternalError("the server sent rows of the unknown type " +
                               std::to_string(wire.dtype()));
  }
  const auto dtype = static_cast<DType>(wire.dtype() - 1);
  Shape shape(wire.shape().begin(), wire.shape().end());
  if (ByteCount(shape, dtype) != wire.data().size()) {
    return absl::InternalError("the server sent " + std::to_string(wire.data().size()) +
                               " bytes for rows of shape " + ToString(shape) + " and type " +
                               std::string(Name(dtype)));
  }
  auto owner = std::make_shared<std::string>(std::move(*wire.mutable_data()));
  const void* bytes = owner->data();
  return Tensor(dtype, std::move(shape), bytes, std::move(owner));
}

Timing DecodeTiming(const v1::Timing& wire) {
  Timing timing;
  timing.queue = std::chrono::nanoseconds(wire.queue_ns());
  timing.batch = std::chrono::nanoseconds(wire.batch_ns());
  timing.compute = std::chrono::nanoseconds(wire.compute_ns());
  timing.batch_sequences = wire.batch_sequences();
  timing.batch_tokens = static_cast<int64_t>(wire.batch_tokens());
  return timing;
}

std::vector<Axis> DecodeAxes(const v1::TensorSpec& wire) {
  std::vector<Axis> axes;
  for (const std::string& text : wire.axes()) {
    int64_t size = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
    const bool number = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    axes.push_back(number ? Axis::Fixed(size) : Axis::Ragged(text.empty() ? '?' : text[0]));
  }
  return axes;
}

BatchAxis DecodeBatchAxis(const v1::TensorSpec& wire) {
  return BatchAxisFromName(wire.batch_axis()).value_or(BatchAxis::kFirst);
}

Signature DecodeSignature(const v1::Model& model) {
  Signature signature;
  for (const auto& input : model.inputs()) {
    signature.inputs.push_back({.name = input.name(),
                                .kind = InputKindFromName(input.kind()).value_or(InputKind::kFloat),
                                .axes = DecodeAxes(input),
                                .optional = input.optional(),
                                .vocabulary = input.vocabulary(),
                                .batch_axis = DecodeBatchAxis(input),
                                .broadcast = input.broadcast(),
                                .folds = input.folds(),
                                .opens = input.opens()});
  }
  for (const auto& output : model.outputs()) {
    signature.outputs.push_back(
        {.name = output.name(), .axes = DecodeAxes(output), .batch_axis = DecodeBatchAxis(output)});
  }
  for (const auto& limit : model.limits()) {
    const char letter = limit.axis().empty() ? '?' : limit.axis()[0];
    signature.limits.push_back(
        {letter, limit.longest(), limit.unless_input(), std::max<int64_t>(limit.shortest(), 1)});
  }
  signature.request_is_unit = model.request_is_unit();
  return signature;
}

}  // namespace

v1::EmbedRequest EncodeRequest(const EmbedCall& call, const std::vector<size_t>& indices) {
  v1::EmbedRequest request;
  request.set_request_id(call.request_id);
  request.set_model(call.model);
  request.set_version(call.version);
  EncodeOptions(call, request.mutable_options());
  request.set_priority(static_cast<uint32_t>(call.priority));
  for (size_t index : indices) EncodeSequence(call.sequences[index], request.add_sequences());
  return request;
}

v1::EmbedRequest EncodeRequest(const EmbedCall& call) {
  std::vector<size_t> all(call.sequences.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return EncodeRequest(call, all);
}

v1::GenerateRequest EncodeGenerateRequest(const GenerateCall& call) {
  v1::GenerateRequest request;
  request.set_model(call.model);
  request.set_version(call.version);
  request.set_priority(static_cast<uint32_t>(call.priority));
  if (call.text) request.set_text(*call.text);
  for (const int64_t id : call.token_ids) request.add_token_ids(static_cast<uint32_t>(id));
  for (const auto& [name, tensor] : call.inputs) {
    EncodeTensor(tensor, &(*request.mutable_inputs())[name]);
  }
  v1::GenerateOptions& options = *request.mutable_options();
  options.set_max_tokens(static_cast<uint32_t>(call.max_tokens));
  options.set_temperature(static_cast<float>(call.temperature));
  options.set_top_k(static_cast<uint32_t>(call.top_k));
  options.set_top_p(static_cast<float>(call.top_p));
  options.set_seed(call.seed);
  for (const int64_t id : call.stop_tokens) options.add_stop_tokens(static_cast<uint32_t>(id));
  return request;
}

absl::StatusOr<ResultChunk> DecodeChunk(v1::EmbedResponse&& response) {
  ResultChunk chunk;
  chunk.index = response.index();
  chunk.id = response.sequence_id();
  if (response.code() != 0) {
    chunk.status = absl::Status(static_cast<absl::StatusCode>(response.code()), response.message());
  }
  if (response.has_session()) {
    chunk.position = static_cast<int64_t>(response.session().position());
    if (!chunk.status.ok()) chunk.status = ResumeFrom(chunk.status, chunk.position);
    chunk.session = std::move(*response.mutable_session()->mutable_state());
  }
  if (response.has_progress()) {
    const v1::Progress& progress = response.progress();
    chunk.progress = {.layers_done = progress.layers_done(),
                      .layers = progress.layers(),
                      .rows_done = static_cast<int64_t>(progress.rows_done()),
                      .rows = static_cast<int64_t>(progress.rows())};
  }
  chunk.row_offset = static_cast<int64_t>(response.row_offset());
  chunk.total_rows = static_cast<int64_t>(response.total_rows());
  chunk.last = response.last();
  chunk.tokens = static_cast<int64_t>(response.tokens());
  chunk.timing = DecodeTiming(response.timing());
  if (response.has_rows()) {
    auto rows = DecodeTensor(std::move(*response.mutable_rows()));
    if (!rows.ok()) return rows.status();
    chunk.output = response.output();
    chunk.rows = *std::move(rows);
  }
  return chunk;
}

ModelDescription DecodeModel(const v1::Model& model) {
  ModelDescription description;
  description.name = model.name();
  description.version = model.version();
  description.architecture = model.architecture();
  description.state = model.state();
  description.signature = DecodeSignature(model);
  description.parameters = model.parameters();
  description.dtype = model.dtype();
  description.padding = model.padding();
  description.pooling = model.pooling();
  description.text = model.text();
  description.session_bytes = model.session_bytes();
  description.no_sessions = model.no_sessions();
  description.generates = model.generates();
  description.replicas = model.replicas();
  description.threads = model.threads();
  description.processor = model.processor();
  description.server_version = model.server_version();
  description.normalize = model.normalize();
  description.truncation = model.truncation();
  description.max_text_tokens = model.max_text_tokens();
  description.prompts = {model.prompts().begin(), model.prompts().end()};
  description.default_prompt = model.default_prompt();
  description.labels = {model.labels().begin(), model.labels().end()};
  return description;
}

absl::Status ToAbsl(const grpc::Status& status) {
  absl::Status read(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (status.error_details().empty() || !details.ParseFromString(status.error_details())) {
    return read;
  }
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (!detail.UnpackTo(&info)) continue;
    return RetryAfter(std::move(read),
                      std::chrono::seconds(info.retry_delay().seconds()) +
                          std::chrono::milliseconds(info.retry_delay().nanos() / 1000000));
  }
  return read;
}

}  // namespace linserve
