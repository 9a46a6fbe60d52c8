#include "rpc/embedding/convert.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/sequence/pooling.h"
#include "core/strings/quote.h"
#include "core/tensor/row_scale.h"
#include "core/tensor/tensor.h"
#include "engine/generation/generation.h"

namespace linserve {
namespace {

// DType and DataType have one order, but DataType's zero means "unspecified".
v1::DataType ToDataType(DType dtype) {
  return static_cast<v1::DataType>(static_cast<int>(dtype) + 1);
}

std::optional<DType> ToDType(v1::DataType type) {
  if (type < v1::DATA_TYPE_BOOL || type > v1::DATA_TYPE_F64) return std::nullopt;
  return static_cast<DType>(static_cast<int>(type) - 1);
}

void FillSpec(const std::string& name, const std::string& kind, const std::vector<Axis>& axes,
              v1::TensorSpec& message) {
  message.set_name(name);
  message.set_kind(kind);
  for (const Axis& axis : axes) {
    message.add_axes(axis.letter != '\0' ? std::string(1, axis.letter) : std::to_string(axis.size));
  }
}

void FillSignature(const Signature& signature, v1::Model& message) {
  for (const InputSpec& input : signature.inputs) {
    v1::TensorSpec& spec = *message.add_inputs();
    FillSpec(input.name, std::string(Name(input.kind)), input.axes, spec);
    spec.set_optional(input.optional);
    spec.set_vocabulary(input.vocabulary);
    spec.set_broadcast(input.broadcast);
    spec.set_folds(input.folds);
    spec.set_opens(input.opens);
    spec.set_batch_axis(std::string(Name(input.batch_axis)));
  }
  for (const OutputSpec& output : signature.outputs) {
    v1::TensorSpec& spec = *message.add_outputs();
    FillSpec(output.name, "float", output.axes, spec);
    spec.set_batch_axis(std::string(Name(output.batch_axis)));
  }
  for (const LengthLimit& limit : signature.limits) {
    v1::LengthLimit& entry = *message.add_limits();
    entry.set_axis(std::string(1, limit.letter));
    entry.set_longest(limit.longest);
    entry.set_unless_input(limit.unless_input);
    entry.set_shortest(limit.shortest);
  }
  message.set_request_is_unit(signature.request_is_unit);
}

// Reads the inputs of a sequence but for what its text becomes.
absl::Status ReadInputs(const v1::Sequence& message, const std::shared_ptr<const void>& owner,
                        TensorMap& inputs) {
  for (const auto& [name, tensor] : message.inputs()) {
    auto converted = ToTensor(tensor, name, owner);
    if (!converted.ok()) return converted.status();
    inputs[name] = *std::move(converted);
  }
  const int forms = (inputs.contains("x") ? 1 : 0) + (message.has_x() ? 1 : 0) +
                    (message.token_ids_size() > 0 ? 1 : 0) + (message.has_text() ? 1 : 0);
  if (forms > 1) {
    return absl::InvalidArgumentError(
        "input 'x' is given more than once: use one of inputs['x'], x, token_ids and text");
  }
  if (message.token_ids_size() > 0) inputs["x"] = ToTensor(message.token_ids());
  if (message.has_x()) {
    auto converted = ToTensor(message.x(), "x", owner);
    if (!converted.ok()) return converted.status();
    inputs["x"] = *std::move(converted);
  }
  return absl::OkStatus();
}

}  // namespace

Tensor ToTensor(const google::protobuf::RepeatedField<uint32_t>& token_ids) {
  auto [tensor, bytes] = Tensor::AllocateUnfilled(DType::kI64, {token_ids.size()});
  std::copy(token_ids.begin(), token_ids.end(), reinterpret_cast<int64_t*>(bytes));
  return tensor;
}

absl::StatusOr<Tensor> ToTensor(const v1::Tensor& message, const std::string& field,
                                const std::shared_ptr<const void>& owner) {
  const std::string where = "input " + Quoted(field) + ": ";
  const std::optional<DType> dtype = ToDType(message.dtype());
  if (!dtype) {
    return absl::InvalidArgumentError(where + "dtype " +
                                      std::to_string(static_cast<int>(message.dtype())) +
                                      " is none of linserve.v1.DataType's");
  }
  Shape shape(message.shape().begin(), message.shape().end());
  const auto expected = CheckedByteSize(*dtype, shape);
  const size_t size = message.data().size();
  if (!expected || static_cast<size_t>(*expected) != size) {
    return absl::InvalidArgumentError(
        where + std::to_string(size) + " bytes of data, expected " +
        (expected ? std::to_string(*expected) : "an impossible number") + " for " +
        std::string(Name(*dtype)) + " of shape " + ToString(shape));
  }
  if (*expected == 0) {
    return absl::InvalidArgumentError(where + "the sequence is empty: shape " + ToString(shape) +
                                      " holds nothing");
  }
  return Tensor(*dtype, std::move(shape), message.data().data(), owner);
}

absl::StatusOr<std::shared_ptr<const SessionChunk>> ToChunk(const v1::SessionChunk& message) {
  if (absl::Status status = CheckSessionId(message.id()); !status.ok()) return status;
  auto chunk = std::make_shared<SessionChunk>();
  chunk->id = message.id();
  chunk->start = message.start();
  chunk->end = message.end();
  chunk->save = message.save();
  if (message.has_position()) {
    // A position that no session can have reached is refused by its value, as any other.
    chunk->position = static_cast<int64_t>(std::min<uint64_t>(message.position(), INT64_MAX));
  }
  chunk->state = message.state();
  return chunk;
}

absl::StatusOr<Item> ToItem(const v1::Sequence& message, const OutputOptions& options,
                            const std::shared_ptr<const void>& owner) {
  Item item;
  item.options = options;
  if (message.has_session()) {
    if (message.has_text()) return absl::InvalidArgumentError(kNoTextInSessions);
    auto chunk = ToChunk(message.session());
    if (!chunk.ok()) return chunk.status();
    item.chunk = *std::move(chunk);
  }
  absl::Status read = ReadInputs(message, owner, item.inputs);
  if (read.ok()) return item;
  if (item.chunk == nullptr) return read;
  item.inputs.clear();
  item.fault = std::move(read);
  return item;
}

absl::StatusOr<std::optional<Truncation>> ToTruncation(v1::Truncation message) {
  switch (message) {
    case v1::TRUNCATION_UNSPECIFIED:
      return std::nullopt;
    case v1::TRUNCATION_NONE:
      return Truncation::kNone;
    case v1::TRUNCATION_LEFT:
      return Truncation::kLeft;
    case v1::TRUNCATION_RIGHT:
      return Truncation::kRight;
    default:
      return absl::InvalidArgumentError("options.truncation is " +
                                        std::to_string(static_cast<int>(message)) +
                                        ", which is none of linserve.v1.Truncation's");
  }
}

absl::StatusOr<OutputOptions> ToOptions(const v1::EmbedOptions& message, Pooling fallback,
                                        bool normalized) {
  OutputOptions options;
  options.outputs.assign(message.outputs().begin(), message.outputs().end());
  options.pooling = fallback;
  if (message.pooling() != v1::POOLING_UNSPECIFIED) {
    if (message.pooling() < v1::POOLING_NONE || message.pooling() > v1::POOLING_MAX) {
      return absl::InvalidArgumentError("options.pooling is " +
                                        std::to_string(static_cast<int>(message.pooling())) +
                                        ", which is none of linserve.v1.Pooling's");
    }
    options.pooling = static_cast<Pooling>(static_cast<int>(message.pooling()) - 1);
  }
  options.normalize = message.has_normalize() ? message.normalize()
                                              : normalized && options.pooling != Pooling::kNone;
  if (message.dtype() != v1::DATA_TYPE_UNSPECIFIED) {
    const std::optional<DType> dtype = ToDType(message.dtype());
    if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16 &&
        dtype != DType::kI8) {
      return absl::InvalidArgumentError("options.dtype is " +
                                        std::to_string(static_cast<int>(message.dtype())) +
                                        ", expected F32, F16, BF16 or I8");
    }
    options.dtype = *dtype;
  }
  if (options.dtype == DType::kI8) DropScales(options.outputs);
  return options;
}

WireMessage ToWire(const Tensor& tensor) {
  v1::Tensor message;
  message.set_dtype(ToDataType(tensor.dtype()));
  message.mutable_shape()->Assign(tensor.shape().begin(), tensor.shape().end());
  WireMessage wire;
  wire.Add(message);
  wire.AddBytes(v1::Tensor::kDataFieldNumber, tensor);
  return wire;
}

void ToMessage(const Timing& timing, v1::Timing& message) {
  message.set_queue_ns(static_cast<uint64_t>(timing.queue.count()));
  message.set_batch_ns(static_cast<uint64_t>(timing.batch.count()));
  message.set_compute_ns(static_cast<uint64_t>(timing.compute.count()));
  message.set_batch_sequences(static_cast<uint32_t>(timing.batch_sequences));
  message.set_batch_tokens(static_cast<uint64_t>(timing.batch_tokens));
}

void ToMessage(const ItemProgress& progress, v1::Progress& message) {
  message.set_layers_done(static_cast<uint32_t>(progress.layers_done));
  message.set_layers(static_cast<uint32_t>(progress.layers));
  message.set_rows_done(static_cast<uint64_t>(progress.rows_done));
  message.set_rows(static_cast<uint64_t>(progress.rows));
}

void ToMessage(const ServedModel& model, bool draining, v1::Model& message) {
  const ModelInfo& info = model.engine->info();
  message.set_name(model.name);
  message.set_version(model.version);
  message.set_architecture(info.architecture);
  message.set_state(std::string(Name(draining ? ModelState::kDraining : ModelState::kReady)));
  message.set_parameters(info.parameters);
  message.set_dtype(std::string(Name(info.dtype)));
  message.set_padding(std::string(Name(model.engine->padding())));
  message.set_pooling(std::string(Name(model.default_pooling)));
  message.set_text(model.tokenizer != nullptr);
  message.set_session_bytes(info.session_bytes);
  message.set_no_sessions(info.no_sessions);
  message.set_generates(Generation::Check(info).ok());
  message.set_replicas(model.engine->options().replicas);
  message.set_threads(model.threads);
  message.set_processor(model.processor);
  message.set_normalize(model.default_normalize);
  message.set_truncation(std::string(Name(model.default_truncation)));
  message.set_max_text_tokens(model.most_text_tokens);
  for (const auto& [name, prompt] : model.prompts) message.add_prompts(name);
  message.set_default_prompt(model.default_prompt);
  if (info.labels) message.mutable_labels()->Assign(info.labels->begin(), info.labels->end());
  FillSignature(info.signature, message);
}

}  // namespace linserve
