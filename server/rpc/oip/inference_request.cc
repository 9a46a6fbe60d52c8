#include "rpc/oip/inference_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/sequence/package_layout.h"
#include "core/sequence/package_results.h"
#include "core/status/retry_delay.h"
#include "core/strings/quote.h"
#include "core/tensor/row_scale.h"
#include "core/tensor/stacking.h"
#include "core/tensor/tensor_bytes.h"
#include "rpc/oip/inference_checks.h"
#include "rpc/oip/inference_parameters.h"
#include "rpc/oip/inference_tensors.h"
#include "rpc/oip/inference_texts.h"
#include "serving/admission.h"

namespace linserve {
namespace {

// Turns the tensors into what `linserve run` reads from a file. Lengths may be [batch, 1], from
// clients for which every tensor has a batch axis and another one.
TensorMap AsFile(const TensorMap& tensors) {
  TensorMap file;
  for (const auto& [name, tensor] : tensors) {
    const Shape& shape = tensor.shape();
    const bool column = IsLengths(name) && shape.size() == 2 && shape[1] == 1;
    file["input." + name] = column ? tensor.Reshaped({shape[0]}) : tensor;
  }
  return file;
}

// Calls token ids as the model does, where the caller calls them as exports of Hugging Face's
// models do.
void NameIds(const Signature& signature, inference::ModelInferRequest& message) {
  constexpr const char* kTheirs = "input_ids";
  const InputSpec* ids = signature.FindInput(kTextBecomes);
  if (ids == nullptr || ids->kind != InputKind::kToken || signature.FindInput(kTheirs)) return;
  for (auto& input : *message.mutable_inputs()) {
    if (input.name() == kTheirs) input.set_name(kTextBecomes);
  }
}

TensorMap Stacked(const std::vector<TensorMap>& results) {
  TensorMap stacked;
  for (const auto& [name, first] : results[0]) {
    std::vector<const Tensor*> parts;
    for (const TensorMap& result : results) parts.push_back(&result.at(name));
    stacked[name] = Stack(parts, 0);
  }
  return stacked;
}

}  // namespace

void InferRequestState::Submit(ServiceContext& service,
                               Received<inference::ModelInferRequest> request) {
  if (request.place) TakeOver(*std::move(request.place));
  const auto model = FindInferModel(service, *context_.caller, request.message.model_name(),
                                    request.message.model_version());
  if (model.ok()) NameIds((*model)->engine->info().signature, request.message);
  message_ = std::make_shared<const inference::ModelInferRequest>(std::move(request.message));
  WholeRequestState::Submit(service, model, request.bytes);
  message_.reset();
}

absl::Status InferRequestState::ReadOptions(const RpcLimits& limits, const ServedModel& model) {
  const inference::ModelInferRequest& message = *message_;
  max_sequences_ = limits.max_sequences_per_request;
  max_bytes_ = limits.max_message_bytes;
  answer_.id = message.id();
  answer_.model_name = model.name;
  answer_.model_version = std::to_string(model.version);
  signature_ = &model.engine->info().signature;
  if (absl::Status status = CheckOutputCount(*signature_, message.outputs_size()); !status.ok()) {
    return status;
  }
  auto options = ReadInferOptions(message, model.default_pooling, model.default_normalize);
  if (!options.ok()) return options.status();
  options_ = *options;
  priority_ = options_.priority;
  prompt_name_ = options_.prompt_name;
  std::vector<std::string>& outputs = options_.output.outputs;
  // Whoever asks for the tokens alone gets what they are of, too.
  const bool alone = outputs == std::vector<std::string>{kTokensOutput};
  if (alone) outputs.push_back(signature_->outputs[0].name);
  for (const std::string& name : outputs) {
    answer_.outputs.push_back(name);
    const bool scaled = options_.output.dtype == DType::kI8 && name != kTokensOutput;
    if (scaled) answer_.outputs.push_back(ScaleOf(name));
  }
  const size_t tokens = std::erase(outputs, kTokensOutput);  // this output is of our own making
  if (tokens > 1) {
    return absl::InvalidArgumentError("output 'tokens': it is asked for more than once");
  }
  if (options_.timeout)
    context_.deadline = std::min(context_.deadline, context_.begin + *options_.timeout);
  return absl::OkStatus();
}

absl::Status InferRequestState::ReadItems(Tokenization& work) {
  work.owner = message_;
  work.truncation = options_.truncation.value_or(work.truncation);
  absl::Status status = HasTexts(*message_) ? ReadTexts(work) : ReadTensors(work);
  if (status.ok()) status = AddSession(work.model->engine->info(), work.items);
  return status;
}

absl::Status InferRequestState::ReadTexts(Tokenization& work) {
  const auto count = CountTexts(*message_, answer_.model_name);
  if (!count.ok()) return count.status();
  absl::Status status = CheckSequences(*work.model, *count);
  if (!status.ok()) return status;
  const auto texts = TextsOf(*message_, answer_.model_name);
  if (!texts.ok()) return texts.status();
  const size_t step = ArePairs(*message_) ? 2 : 1;
  for (size_t i = 0; i < texts->size(); i += step) {
    TextInput text{work.items.size(), (*texts)[i]};
    if (step == 2) text.second = (*texts)[i + 1];
    work.texts.push_back(text);
    work.items.emplace_back(Item{{}, options_.output});
  }
  return absl::OkStatus();
}

absl::Status InferRequestState::ReadTensors(Tokenization& work) {
  const std::string& model = answer_.model_name;
  absl::Status status =
      CheckInputs(*signature_, *message_, model, work.model->tokenizer != nullptr);
  if (status.ok()) status = ReserveBytes(*work.model, ConvertedBytes(*message_));
  if (!status.ok()) return status;
  auto tensors = ToTensors(*message_, model, message_);
  if (!tensors.ok()) return tensors.status();
  status = CheckDatatypes(*signature_, *tensors, model);
  if (status.ok()) status = CheckRanks(*signature_, *tensors, model);
  if (!status.ok()) return status;
  const auto batch = PackageBatch::From(*signature_, AsFile(*tensors));
  if (!batch.ok()) return batch.status();
  const auto count = CountSequences(*signature_, batch->inputs);
  if (!count.ok()) return count.status();
  status = CheckSequences(*work.model, *count);
  if (!status.ok()) return status;
  status = ReserveBytes(*work.model, batch->CopiedBytes(*signature_));
  if (!status.ok()) return status;
  padded_ = batch->PaddedLengths(*signature_);
  auto items = SplitBatch(*signature_, *batch);
  if (!items.ok()) return items.status();
  for (Item& item : *items) {
    item.options = options_.output;
    work.items.emplace_back(std::move(item));
  }
  return absl::OkStatus();
}

// Checks how many sequences the request holds, and reserves what is made of them, before anything
// is.
absl::Status InferRequestState::CheckSequences(const ServedModel& model, int64_t sequences) {
  if (sequences < 1) return absl::InvalidArgumentError("the request holds no sequences");
  if (sequences > max_sequences_) {
    return absl::InvalidArgumentError(
        "inference request batch-size must be <= " + std::to_string(max_sequences_) + " for " +
        Quoted(answer_.model_name));
  }
  absl::Status status = CheckChunkRows(sequences);
  return status.ok() ? ReserveItems(model, static_cast<size_t>(sequences)) : status;
}

absl::Status InferRequestState::CheckChunkRows(int64_t sequences) const {
  if (options_.chunk_rows == 0) return absl::OkStatus();
  if (!chunks_) {
    return absl::InvalidArgumentError(
        "parameter 'chunk_rows': ModelInfer has one answer; use ModelStreamInfer");
  }
  if (sequences == 1 && options_.output.pooling == Pooling::kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "parameter 'chunk_rows': expected one sequence in the request and no pooling");
}

// Makes the sequence the next chunk of a session, if the request names one.
absl::Status InferRequestState::AddSession(const ModelInfo& info,
                                           std::vector<absl::StatusOr<Item>>& items) {
  if (options_.chunk == nullptr) return absl::OkStatus();
  // A model without sessions has an error of its own, which says more than this one.
  if (items.size() != 1 && info.sessions != nullptr) {
    return absl::InvalidArgumentError(
        "parameter 'sequence_id': expected one sequence in the request, got " +
        std::to_string(items.size()));
  }
  if (HasTexts(*message_)) return absl::InvalidArgumentError(kNoTextInSessions);
  for (auto& item : items) item->chunk = options_.chunk;
  for (const char* name : {"sequence_id", "sequence_start", "sequence_end"}) {
    const auto given = message_->parameters().find(name);
    if (given != message_->parameters().end()) answer_.parameters[name] = given->second;
  }
  return absl::OkStatus();
}

absl::Status InferRequestState::Answer(std::vector<ItemResult> results, const Timing& last) {
  if (CallerLeft()) return absl::CancelledError("the caller left");
  const size_t sequences = results.size();
  if (const int64_t position = results[0].position; position > 0) {
    answer_.parameters[kSequencePosition].set_int64_param(position);
  }
  std::vector<int64_t> tokens;
  for (const ItemResult& result : results) tokens.push_back(result.tokens);
  const int64_t position = results[0].position;
  if (absl::Status status = Join(results); !status.ok()) {
    const bool goes_on = options_.chunk != nullptr && !options_.chunk->end;
    return goes_on ? ReadWithoutResult(status, position) : status;
  }
  if (std::find(answer_.outputs.begin(), answer_.outputs.end(), kTokensOutput) !=
      answer_.outputs.end()) {
    answer_.whole[kTokensOutput] = Tensor::FromInts({std::ssize(tokens)}, tokens);
  }
  answer_.sending = UntilSent();
  Succeeded(last, sequences);
  done_(std::move(answer_));
  return absl::OkStatus();
}

// Joins the results to the answer, whose size is checked before it is made.
absl::Status InferRequestState::Join(std::vector<ItemResult>& results) {
  std::vector<TensorMap> outputs;
  int64_t computed = 0;
  for (ItemResult& result : results) {
    computed += BytesOf(result.outputs);
    outputs.push_back(std::move(result.outputs));
  }
  if (options_.chunk_rows > 0) {
    answer_.rows = std::move(outputs[0]);
    answer_.chunk_rows = options_.chunk_rows;
    for (const OutputSpec& output : signature_->outputs) {
      if (output.batch_axis != BatchAxis::kSecond) continue;
      answer_.batch_second.insert({output.name, ScaleOf(output.name)});
    }
    return CheckSize(BytesOf(answer_.TensorsOf(0)));
  }
  // Vectors have no padding, and their batch is always first.
  const bool vectors = options_.output.pooling != Pooling::kNone;
  const auto padding = vectors ? std::map<char, int64_t>() : padded_;
  const auto bytes = JoinedBytes(*signature_, outputs, padding);
  absl::Status status = CheckSize(bytes.value_or(std::numeric_limits<int64_t>::max()));
  // Padding may be many times what was computed.
  if (status.ok()) status = ReserveResultBytes(std::max<int64_t>(0, *bytes - computed));
  if (status.ok())
    answer_.whole = vectors ? Stacked(outputs) : JoinBatch(*signature_, outputs, padded_);
  return status;
}

absl::Status InferRequestState::CheckSize(int64_t bytes) const {
  if (bytes <= max_bytes_) return absl::OkStatus();
  return NeverFits(absl::ResourceExhaustedError(
      "the answer has " + std::to_string(bytes) + " bytes, at most " + std::to_string(max_bytes_) +
      " fit into a message (max_message_bytes): send fewer sequences, ask for pooling or dtype "
      "INT8, or stream it in chunks (parameter chunk_rows of ModelStreamInfer)"));
}

}  // namespace linserve
