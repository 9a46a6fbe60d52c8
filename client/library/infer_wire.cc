#include "client/library/infer_wire.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/sequence/pooling.h"
#include "core/tensor/row_scale.h"
#include "core/tensor/stacking.h"
#include "core/tensor/text_bytes.h"

namespace linserve {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 10> kDatatypes = {{
    {DType::kF32, "FP32"},
    {DType::kF64, "FP64"},
    {DType::kF16, "FP16"},
    {DType::kBF16, "BF16"},
    {DType::kU8, "UINT8"},
    {DType::kI8, "INT8"},
    {DType::kI16, "INT16"},
    {DType::kI32, "INT32"},
    {DType::kI64, "INT64"},
    {DType::kBool, "BOOL"},
}};

// linserve has this output besides those of the model: the lengths of the sequences.
constexpr const char* kTokens = "tokens";

std::string Datatype(DType dtype) {
  for (const auto& [type, name] : kDatatypes) {
    if (type == dtype) return std::string(name);
  }
  return "";
}

std::optional<DType> ToDType(const std::string& datatype) {
  for (const auto& [type, name] : kDatatypes) {
    if (name == datatype) return type;
  }
  return std::nullopt;
}

void AddInput(const std::string& name, const Tensor& tensor,
              inference::ModelInferRequest& message) {
  auto& input = *message.add_inputs();
  input.set_name(name);
  input.set_datatype(Datatype(tensor.dtype()));
  input.mutable_shape()->Assign(tensor.shape().begin(), tensor.shape().end());
  message.add_raw_input_contents(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
}

// Returns the lengths of the sequences. The length of a text, which only the server knows, is 0.
std::vector<int64_t> LengthsOf(const EmbedCall& call) {
  std::vector<int64_t> lengths;
  for (const NamedSequence& sequence : call.sequences) {
    if (sequence.inputs.empty()) {
      lengths.push_back(0);
      continue;
    }
    // The length lies along the first axis of the first input.
    const Shape& shape = sequence.inputs.begin()->second.shape();
    lengths.push_back(shape.empty() ? 1 : shape[0]);
  }
  return lengths;
}

// Returns whether all sequences have the same shapes.
bool Agree(const EmbedCall& call) {
  const TensorMap& first = call.sequences[0].inputs;
  return std::all_of(call.sequences.begin(), call.sequences.end(), [&](const auto& sequence) {
    return std::all_of(first.begin(), first.end(), [&](const auto& input) {
      const auto own = sequence.inputs.find(input.first);
      return own != sequence.inputs.end() && own->second.shape() == input.second.shape();
    });
  });
}

template <typename Map>
void AddSession(const SessionChunk& chunk, Map& parameters) {
  parameters["sequence_id"].set_string_param(chunk.id);
  parameters["sequence_start"].set_bool_param(chunk.start);
  parameters["sequence_end"].set_bool_param(chunk.end);
  if (chunk.position) parameters["sequence_position"].set_int64_param(*chunk.position);
}

void AddOptions(const EmbedCall& call, inference::ModelInferRequest& message) {
  const OutputOptions& options = call.options;
  auto& parameters = *message.mutable_parameters();
  parameters["pooling"].set_string_param(std::string(Name(options.pooling)));
  parameters["normalize"].set_bool_param(options.normalize);
  if (options.dtype != DType::kF32) {
    parameters["dtype"].set_string_param(Datatype(options.dtype));
  }
  if (call.priority != Priority::kNormal) {
    parameters["priority"].set_uint64_param(static_cast<uint64_t>(call.priority));
  }
  if (!call.prompt_name.empty()) parameters["prompt_name"].set_string_param(call.prompt_name);
  for (const std::string& name : options.outputs) message.add_outputs()->set_name(name);
  if (call.sequences.size() == 1 && call.sequences[0].session) {
    AddSession(*call.sequences[0].session, parameters);
  }
}

// Adds the texts as BYTES of shape [batch], and asks for their lengths, too.
absl::Status AddTexts(const EmbedCall& call, inference::ModelInferRequest& message) {
  auto& input = *message.add_inputs();
  input.set_name("text");
  input.set_datatype("BYTES");
  input.add_shape(std::ssize(call.sequences));
  std::string& raw = *message.add_raw_input_contents();
  for (const NamedSequence& sequence : call.sequences) {
    if (!sequence.text) {
      return absl::UnimplementedError("--protocol oip has no batches of both texts and token ids");
    }
    AppendText(*sequence.text, raw);
  }
  message.add_outputs()->set_name(kTokens);
  auto& parameters = *message.mutable_parameters();
  if (call.truncation) {
    parameters["truncation"].set_string_param(std::string(Name(*call.truncation)));
  }
  return absl::OkStatus();
}

// Converts an output of the whole batch.
absl::StatusOr<Tensor> ToTensor(const inference::ModelInferResponse::InferOutputTensor& output,
                                const std::string& raw, size_t batch) {
  const auto dtype = ToDType(output.datatype());
  const Shape shape(output.shape().begin(), output.shape().end());
  if (!dtype || CheckedByteSize(*dtype, shape) != static_cast<int64_t>(raw.size())) {
    return absl::InternalError("the output " + output.name() + " of type " + output.datatype() +
                               " has " + std::to_string(raw.size()) +
                               " bytes, which its shape contradicts");
  }
  if (shape.empty() || std::cmp_not_equal(shape[0], batch)) {
    return absl::InternalError("the output " + output.name() + " is none of the batch of " +
                               std::to_string(batch));
  }
  auto owner = std::make_shared<const std::string>(raw);
  return Tensor(*dtype, shape, owner->data(), owner);
}

// Says whether an output tells lengths: a model of another server may have one of this name, too.
bool TellsLengths(const inference::ModelInferResponse::InferOutputTensor& output) {
  const auto dtype = ToDType(output.datatype());
  return output.name() == kTokens && output.shape_size() == 1 && dtype && IsInteger(*dtype);
}

// Reads the lengths that the server tells, if it does.
absl::Status ReadLengths(const inference::ModelInferResponse& response,
                         std::vector<int64_t>& lengths) {
  for (int i = 0; i < response.outputs_size(); ++i) {
    if (!TellsLengths(response.outputs(i))) continue;
    const auto tokens =
        ToTensor(response.outputs(i), response.raw_output_contents(i), lengths.size());
    if (!tokens.ok()) return tokens.status();
    ConvertToInt64(tokens->dtype(), tokens->bytes(), tokens->elements(), lengths.data());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<inference::ModelInferRequest> EncodeInferRequest(const EmbedCall& call) {
  inference::ModelInferRequest message;
  message.set_model_name(call.model);
  if (call.version != 0) message.set_model_version(std::to_string(call.version));
  message.set_id(call.request_id);
  AddOptions(call, message);
  if (call.sequences.empty()) return message;
  if (call.sequences[0].text) {
    absl::Status status = AddTexts(call, message);
    if (!status.ok()) return status;
    return message;
  }
  for (const auto& [name, first] : call.sequences[0].inputs) {
    std::vector<const Tensor*> parts;
    for (const NamedSequence& sequence : call.sequences) {
      const auto input = sequence.inputs.find(name);
      if (input != sequence.inputs.end()) parts.push_back(&input->second);
    }
    AddInput(name, Stack(parts, 0), message);
  }
  if (Agree(call)) return message;
  if (call.sequences[0].inputs.size() > 1) {
    return absl::UnimplementedError(
        "--protocol oip pads sequences of one input only, and these have several and differ in "
        "length; send one sequence a request, or take --protocol linserve");
  }
  const std::vector<int64_t> lengths = LengthsOf(call);
  AddInput("lengths", Tensor::FromInts({static_cast<int64_t>(lengths.size())}, lengths), message);
  return message;
}

absl::StatusOr<std::vector<SequenceResult>> DecodeInferResponse(
    const EmbedCall& call, const inference::ModelInferResponse& response) {
  if (response.outputs_size() != response.raw_output_contents_size()) {
    return absl::InternalError("the server sent no raw bytes for some output");
  }
  std::vector<int64_t> lengths = LengthsOf(call);
  if (absl::Status status = ReadLengths(response, lengths); !status.ok()) return status;
  std::vector<SequenceResult> results(call.sequences.size());
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].index = i;
    results[i].id = call.sequences[i].id;
    results[i].tokens = lengths[i];
  }
  const auto position = response.parameters().find("sequence_position");
  if (position != response.parameters().end()) {
    results[0].position = position->second.int64_param();
  }
  int64_t longest = 0;
  for (const int64_t length : lengths) longest = std::max(longest, length);
  for (int i = 0; i < response.outputs_size(); ++i) {
    if (TellsLengths(response.outputs(i))) continue;
    auto batch = ToTensor(response.outputs(i), response.raw_output_contents(i), results.size());
    if (!batch.ok()) return batch.status();
    const Shape each(batch->shape().begin() + 1, batch->shape().end());
    // A vector has no rows, whatever was asked for.
    const bool rows = each.size() > 1 && each[0] == longest;
    for (size_t s = 0; s < results.size(); ++s) {
      const auto place = static_cast<int64_t>(s);
      const Tensor own = batch->Rows(place, place + 1).Reshaped(each);
      results[s].outputs[response.outputs(i).name()] =
          rows ? own.Rows(0, std::clamp<int64_t>(lengths[s], 0, longest)) : own;
    }
  }
  for (SequenceResult& result : results) {
    if (auto status = Dequantize(result.outputs); !status.ok()) {
      return absl::InternalError(status.message());
    }
  }
  return results;
}

ModelDescription DecodeMetadata(const inference::ModelMetadataResponse& metadata,
                                int64_t vocabulary) {
  ModelDescription model;
  model.name = metadata.name();
  const auto property = [&](const char* name) {
    const auto found = metadata.properties().find(name);
    return found == metadata.properties().end() ? std::string() : found->second;
  };
  model.text = !property("text_input").empty();
  model.pooling = property("pooling");
  model.normalize = property("normalize") == "true";
  const auto axes_of = [](const auto& shape) {
    std::vector<Axis> axes;
    for (int i = 1; i < shape.size(); ++i) {
      axes.push_back(shape[i] < 0 ? Axis::Ragged('n') : Axis::Fixed(shape[i]));
    }
    return axes;
  };
  for (const auto& tensor : metadata.inputs()) {
    if (tensor.datatype() == "BYTES") continue;  // a text stands in for the others
    InputSpec input;
    input.name = tensor.name();
    input.axes = axes_of(tensor.shape());
    if (tensor.datatype() == "BOOL") input.kind = InputKind::kMask;
    if (tensor.datatype().find("INT") != std::string::npos) {
      input.kind = InputKind::kToken;
      input.vocabulary = vocabulary;
    }
    model.signature.inputs.push_back(std::move(input));
  }
  for (const auto& tensor : metadata.outputs()) {
    if (tensor.name() == kTokens) continue;
    model.signature.outputs.push_back({tensor.name(), axes_of(tensor.shape())});
  }
  return model;
}

}  // namespace linserve
