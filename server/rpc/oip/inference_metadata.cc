#include "rpc/oip/inference_metadata.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/sequence/pooling.h"
#include "rpc/oip/inference_tensors.h"
#include "rpc/oip/inference_texts.h"

namespace linserve {
namespace {

constexpr int64_t kAny = -1;

std::vector<int64_t> Dims(const std::vector<Axis>& axes) {
  std::vector<int64_t> dims;
  for (const Axis& axis : axes) dims.push_back(axis.letter == '\0' ? axis.size : kAny);
  return dims;
}

std::vector<int64_t> WithBatch(std::vector<int64_t> dims, BatchAxis axis) {
  switch (axis) {
    case BatchAxis::kFirst:
      dims.insert(dims.begin(), kAny);
      break;
    case BatchAxis::kSecond:
      dims.insert(dims.begin() + std::min<ptrdiff_t>(1, std::ssize(dims)), kAny);
      break;
    case BatchAxis::kFolded:
      if (!dims.empty()) dims[0] = kAny;
      break;
    case BatchAxis::kNone:
      break;
  }
  return dims;
}

// Says what pooling makes of an output: one vector of the rows along the first lettered axis, with
// the batch first.
struct OutputForm {
  std::vector<int64_t> dims;
  BatchAxis batch_axis;
};

OutputForm FormOf(const OutputSpec& output, Pooling pooling) {
  OutputForm form{Dims(output.axes), output.batch_axis};
  if (pooling != Pooling::kNone && output.HasRows()) {
    form.dims.erase(form.dims.begin());
    form.batch_axis = BatchAxis::kFirst;
  }
  return form;
}

bool IsBatchFirst(const Signature& signature) {
  const auto first = [](const auto& spec) { return spec.batch_axis == BatchAxis::kFirst; };
  return std::all_of(signature.inputs.begin(), signature.inputs.end(), first) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), first);
}

inference::DataType ConfigType(DType dtype) {
  if (dtype == DType::kBool) return inference::TYPE_BOOL;
  return dtype == DType::kI64 ? inference::TYPE_INT64 : inference::TYPE_FP32;
}

// Optional inputs are left out: clients that fill whatever is listed would send nonsense.
std::vector<const InputSpec*> ListedInputs(const Signature& signature) {
  std::vector<const InputSpec*> listed;
  for (const InputSpec& input : signature.inputs) {
    if (!input.optional) listed.push_back(&input);
  }
  return listed;
}

void Describe(const std::string& name, std::string_view datatype, const std::vector<int64_t>& shape,
              inference::ModelMetadataResponse::TensorMetadata& message) {
  message.set_name(name);
  message.set_datatype(std::string(datatype));
  message.mutable_shape()->Assign(shape.begin(), shape.end());
}

void FillVersions(const VersionChoice& choice, inference::ModelVersionPolicy& message) {
  if (choice.latest > 0) {
    message.mutable_latest()->set_num_versions(static_cast<uint32_t>(choice.latest));
  } else if (choice.versions.empty()) {
    message.mutable_all();
  } else {
    message.mutable_specific()->mutable_versions()->Assign(choice.versions.begin(),
                                                           choice.versions.end());
  }
}

// Returns how many texts a sequence is of: classifiers take pairs of them, too.
int64_t TextsOfOne(const ServedModel& model) { return model.engine->info().labels ? kAny : 1; }

// Adds what a tokenizer's model has beside its own inputs and outputs.
void AddTexts(bool batch_first, int64_t texts, inference::ModelConfig& message) {
  inference::ModelInput& text = *message.add_input();
  text.set_name(kTextInput);
  text.set_data_type(inference::TYPE_STRING);
  text.set_optional(true);
  inference::ModelOutput& tokens = *message.add_output();
  tokens.set_name(kTokensOutput);
  tokens.set_data_type(inference::TYPE_INT64);
  if (!batch_first) {
    text.add_dims(kAny);
    tokens.add_dims(kAny);
  }
  text.add_dims(texts);
}

}  // namespace

void FillMetadata(const ServedModel& model, inference::ModelMetadataResponse& message) {
  const ModelInfo& info = model.engine->info();
  message.set_name(model.name);
  message.set_platform("linserve");
  for (const InputSpec* input : ListedInputs(info.signature)) {
    Describe(input->name, Datatype(AnnouncedType(input->kind)),
             WithBatch(Dims(input->axes), input->batch_axis), *message.add_inputs());
  }
  for (const OutputSpec& output : info.signature.outputs) {
    const OutputForm form = FormOf(output, model.default_pooling);
    Describe(output.name, Datatype(DType::kF32), WithBatch(form.dims, form.batch_axis),
             *message.add_outputs());
  }
  if (model.tokenizer != nullptr) {
    Describe(kTextInput, "BYTES", {kAny, TextsOfOne(model)}, *message.add_inputs());
    Describe(kTokensOutput, Datatype(DType::kI64), {kAny}, *message.add_outputs());
  }
  auto& properties = *message.mutable_properties();
  properties["architecture"] = info.architecture;
  properties["parameters"] = std::to_string(info.parameters);
  properties["dtype"] = std::string(Name(info.dtype));
  properties["pooling"] = std::string(Name(model.default_pooling));
  properties["normalize"] = model.default_normalize ? "true" : "false";
  if (model.tokenizer != nullptr) properties["text_input"] = kTextInput;
}

void FillConfig(const ServedModel& model, inference::ModelConfig& message) {
  const ModelInfo& info = model.engine->info();
  const EngineOptions& options = model.engine->options();
  const bool batch_first = IsBatchFirst(info.signature);
  message.set_name(model.name);
  message.set_platform("linserve");
  message.set_backend("linserve");
  message.set_default_model_filename("model.safetensors");
  FillVersions(model.versions, *message.mutable_version_policy());
  if (options.cache_bytes > 0) message.mutable_response_cache()->set_enable(true);
  if (batch_first) {
    message.set_max_batch_size(static_cast<int32_t>(
        std::min<int64_t>(options.policy.max_sequences, std::numeric_limits<int32_t>::max())));
  }
  for (const InputSpec* spec : ListedInputs(info.signature)) {
    inference::ModelInput& input = *message.add_input();
    input.set_name(spec->name);
    input.set_data_type(ConfigType(AnnouncedType(spec->kind)));
    const auto dims =
        batch_first ? Dims(spec->axes) : WithBatch(Dims(spec->axes), spec->batch_axis);
    input.mutable_dims()->Assign(dims.begin(), dims.end());
    input.set_optional(model.tokenizer != nullptr);  // a text may stand in for it
  }
  for (const OutputSpec& spec : info.signature.outputs) {
    const OutputForm form = FormOf(spec, model.default_pooling);
    inference::ModelOutput& output = *message.add_output();
    output.set_name(spec.name);
    output.set_data_type(ConfigType(DType::kF32));
    const auto dims = batch_first ? form.dims : WithBatch(form.dims, form.batch_axis);
    output.mutable_dims()->Assign(dims.begin(), dims.end());
  }
  if (model.tokenizer != nullptr) AddTexts(batch_first, TextsOfOne(model), message);
  inference::ModelInstanceGroup& group = *message.add_instance_group();
  group.set_name(model.name);
  group.set_count(static_cast<int32_t>(options.replicas));
  group.set_kind(info.device == "cpu" ? inference::ModelInstanceGroup::KIND_CPU
                                      : inference::ModelInstanceGroup::KIND_GPU);
  const auto delay =
      std::chrono::duration_cast<std::chrono::microseconds>(options.policy.max_delay);
  message.mutable_dynamic_batching()->set_max_queue_delay_microseconds(
      static_cast<uint64_t>(delay.count()));
  message.mutable_model_transaction_policy();
  auto& parameters = *message.mutable_parameters();
  parameters["architecture"].set_string_value(info.architecture);
  parameters["max_batch_tokens"].set_string_value(std::to_string(options.policy.max_tokens));
}

}  // namespace linserve
