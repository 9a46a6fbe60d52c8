#include "rpc/inference_request.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/content.h"
#include "core/package_layout.h"
#include "core/quote.h"
#include "core/retry_delay.h"
#include "core/row_scale.h"
#include "core/stacking.h"
#include "rpc/admission.h"
#include "rpc/inference_checks.h"
#include "rpc/inference_parameters.h"
#include "rpc/inference_tensors.h"
#include "rpc/inference_texts.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

// What `linserve run` reads from a file. Lengths may be [batch, 1], from clients for which every
// tensor has a batch axis and another one.
TensorMap AsFile(const TensorMap& tensors) {
  TensorMap file;
  for (const auto& [name, tensor] : tensors) {
    const Shape& shape = tensor.shape();
    const bool column = IsLengths(name) && shape.size() == 2 && shape[1] == 1;
    file["input." + name] = column ? tensor.Reshaped({shape[0]}) : tensor;
  }
  return file;
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

// The rows of one sequence in parts of so many. Outputs with fewer of them end earlier, empty.
std::vector<TensorMap> Chunks(const TensorMap& outputs, int64_t rows) {
  int64_t longest = 0;
  for (const auto& [name, tensor] : outputs) longest = std::max(longest, tensor.shape()[0]);
  std::vector<TensorMap> chunks;
  for (int64_t begin = 0; begin == 0 || begin < longest; begin += rows) {
    TensorMap& chunk = chunks.emplace_back();
    for (const auto& [name, tensor] : outputs) {
      const int64_t length = tensor.shape()[0];
      chunk[name] = tensor.Rows(std::min(begin, length), std::min(begin + rows, length));
    }
  }
  return chunks;
}

}  // namespace

InferRequestState::InferRequestState(CallSide call, RequestContext context)
    : call_(std::move(call)), context_(std::move(context)) {
  call_.metrics.Started();
}

InferRequestState::~InferRequestState() {
  const MutexLock lock(mutex_);
  call_.metrics.Finished(static_cast<int>(status_.code()), Age());
  RequestEnded(context_, call_.metrics.rpc(), answer_.model_name, sequences_, status_);
}

void InferRequestState::Refuse(const absl::Status& status) {
  if (statistics_ != nullptr) statistics_->Failed(Age());
  {
    const MutexLock lock(mutex_);
    status_ = status;
  }
  call_.done(status);
}

void InferRequestState::Submit(ServiceContext& service,
                               Received<inference::ModelInferRequest> request) {
  const absl::Status status = Begin(service, std::move(request));
  if (!status.ok()) Refuse(status);
}

absl::Status InferRequestState::Begin(ServiceContext& service,
                                      Received<inference::ModelInferRequest> request) {
  inference::ModelInferRequest& message = request.message;
  max_bytes_ = service.limits.max_message_bytes;
  const auto model =
      FindModel(service, *context_.caller, message.model_name(), message.model_version());
  if (!model.ok()) return model.status();
  ModelMetrics& metrics = (*model)->engine->metrics();
  statistics_ = &metrics.statistics();
  absl::Status status = ReadOptions(**model, message);
  if (!status.ok()) {
    metrics.Rejected(RejectReason::kInvalid);
    return status;
  }
  auto place = Reserve(service, *context_.caller, **model, request.bytes);
  if (!place.ok()) return place.status();
  place_ = *std::move(place);
  const bool texts_given = HasTexts(message);
  if (texts_given) PutBack(request);
  const auto owner = std::make_shared<const inference::ModelInferRequest>(std::move(message));
  Tokenization texts{.model = *model,
                     .owner = owner,
                     .truncation = options_.truncation,
                     .max_text_bytes = service.limits.max_text_bytes,
                     .abandoned = [self = shared_from_this()] { return self->Abandoned(); }};
  if (texts_given) {
    status = ReadTexts(owner, texts);
  } else {
    auto items = Items((*model)->name, owner, request.large);
    status = items.status();
    if (items.ok()) {
      texts.items.assign(std::make_move_iterator(items->begin()),
                         std::make_move_iterator(items->end()));
    }
  }
  if (status.ok()) status = CheckCount(texts.items.size(), service.limits);
  if (status.ok()) status = CheckChunks(texts.items.size());
  if (status.ok()) status = AddSession((*model)->engine->info(), *owner, texts.items);
  if (!status.ok()) {
    metrics.Rejected(RejectReason::kInvalid);
    return status;
  }
  texts.done = [self = shared_from_this(),
                served = *model](std::vector<absl::StatusOr<Item>> done) {
    const absl::Status taken = self->Enqueue(*served, std::move(done));
    if (!taken.ok()) self->Refuse(taken);
  };
  Tokenize(service.tokenizers, std::move(texts));
  return absl::OkStatus();
}

absl::Status InferRequestState::Enqueue(const ServedModel& model,
                                        std::vector<absl::StatusOr<Item>> items) {
  absl::Status status = ReserveResults(model, items, place_);
  if (!status.ok()) return status;
  Request request;
  request.id = context_.id;
  request.trace_id = context_.trace_id;
  request.caller = context_.caller->name();
  request.deadline = context_.deadline;
  request.priority = context_.caller->Allowed(options_.priority);
  request.sink = shared_from_this();
  request.items = std::move(items);
  {
    const MutexLock lock(mutex_);
    unanswered_ = request.items.size();
    outputs_.resize(request.items.size());
    tokens_.resize(request.items.size());
    sequences_ = request.items.size();
  }
  return model.engine->Submit(request);
}

absl::Status InferRequestState::ReadOptions(const ServedModel& model,
                                            const inference::ModelInferRequest& message) {
  answer_.id = message.id();
  answer_.model_name = model.name;
  answer_.model_version = std::to_string(model.version);
  signature_ = &model.engine->info().signature;
  auto options = ReadInferOptions(message, model.default_pooling);
  if (!options.ok()) return options.status();
  options_ = *options;
  std::vector<std::string>& outputs = options_.output.outputs;
  const bool tokens = std::erase(outputs, kTokensOutput) > 0;  // which is of our own making
  if (tokens && outputs.empty()) outputs.push_back(signature_->outputs[0].name);
  for (const std::string& name : outputs) {
    answer_.outputs.push_back(name);
    if (options_.output.dtype == DType::kI8) answer_.outputs.push_back(ScaleOf(name));
  }
  if (tokens) answer_.outputs.emplace_back(kTokensOutput);
  if (options_.timeout)
    context_.deadline = std::min(context_.deadline, context_.begin + *options_.timeout);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Item>> InferRequestState::Items(const std::string& model,
                                                           const Message& message,
                                                           const LargeFields& large) {
  auto tensors = ToTensors(*message, large, model, message);
  if (!tensors.ok()) return tensors.status();
  absl::Status status = CheckInputs(*signature_, *tensors, model);
  if (status.ok()) status = CheckDatatypes(*signature_, *tensors, model);
  if (!status.ok()) return status;
  const auto batch = PackageBatch::From(*signature_, AsFile(*tensors));
  if (!batch.ok()) return batch.status();
  padded_ = batch->PaddedLengths(*signature_);
  auto items = SplitBatch(*signature_, *batch);
  if (!items.ok()) return items;
  for (Item& item : *items) item.options = options_.output;
  return items;
}

absl::Status InferRequestState::ReadTexts(const Message& message, Tokenization& texts) const {
  const auto given = TextsOf(*message, answer_.model_name);
  if (!given.ok()) return given.status();
  for (const std::string_view text : *given) {
    texts.texts.push_back({texts.items.size(), text});
    texts.items.emplace_back(Item{{}, options_.output});
  }
  return absl::OkStatus();
}

absl::Status InferRequestState::CheckCount(size_t sequences, const RpcLimits& limits) const {
  if (sequences == 0) return absl::InvalidArgumentError("the request holds no sequences");
  if (std::cmp_less_equal(sequences, limits.max_sequences_per_request)) return absl::OkStatus();
  return absl::InvalidArgumentError("inference request batch-size must be <= " +
                                    std::to_string(limits.max_sequences_per_request) + " for " +
                                    Quoted(answer_.model_name));
}

absl::Status InferRequestState::CheckChunks(size_t sequences) const {
  if (options_.chunk_rows == 0) return absl::OkStatus();
  if (!call_.chunks) {
    return absl::InvalidArgumentError(
        "parameter 'chunk_rows': ModelInfer has one answer; use ModelStreamInfer");
  }
  if (sequences == 1 && options_.output.pooling == Pooling::kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "parameter 'chunk_rows': expected one sequence in the request and no pooling");
}

// The sequence is the next chunk of a session, if the request names one.
absl::Status InferRequestState::AddSession(const ModelInfo& info,
                                           const inference::ModelInferRequest& message,
                                           std::vector<absl::StatusOr<Item>>& items) {
  if (options_.chunk == nullptr) return absl::OkStatus();
  // A model without sessions has more to say than this.
  if (items.size() != 1 && info.sessions != nullptr) {
    return absl::InvalidArgumentError(
        "parameter 'sequence_id': expected one sequence in the request, got " +
        std::to_string(items.size()));
  }
  if (HasTexts(message)) return absl::InvalidArgumentError(kNoTextInSessions);
  for (auto& item : items) item->chunk = options_.chunk;
  for (const char* name : {"sequence_id", "sequence_start", "sequence_end"}) {
    const auto given = message.parameters().find(name);
    if (given != message.parameters().end()) answer_.parameters[name] = given->second;
  }
  return absl::OkStatus();
}

void InferRequestState::Deliver(size_t index, absl::StatusOr<ItemResult> result) {
  std::vector<TensorMap> outputs;
  std::vector<int64_t> tokens;
  absl::Status fault = result.status();
  {
    const MutexLock lock(mutex_);
    if (answered_) return;
    if (result.ok()) {
      outputs_[index] = std::move(result->outputs);
      tokens_[index] = result->tokens;
      if (--unanswered_ > 0) return;
      outputs = std::move(outputs_);
      tokens = std::move(tokens_);
    } else if (sequences_ > 1) {
      fault = WithPrefix(fault, "sequence " + std::to_string(index) + " of the batch: ");
    }
    answered_ = true;
  }
  if (fault.ok() && result->position > 0) {
    answer_.parameters[kSequencePosition].set_int64_param(result->position);
  }
  absl::StatusOr<InferAnswer> answer =
      fault.ok() ? AnswerWith(outputs, tokens) : absl::StatusOr<InferAnswer>(fault);
  if (answer.ok()) {
    statistics_->Succeeded(result->timing, outputs.size(), Age());
  } else {
    statistics_->Failed(Age());
    const MutexLock lock(mutex_);
    status_ = answer.status();
  }
  call_.done(std::move(answer));
}

bool InferRequestState::Abandoned() const {
  if (call_.abandoned()) return true;
  const MutexLock lock(mutex_);
  return answered_;
}

absl::StatusOr<InferAnswer> InferRequestState::AnswerWith(
    const std::vector<TensorMap>& outputs, const std::vector<int64_t>& tokens) const {
  InferAnswer answer = answer_;
  if (options_.chunk_rows > 0) {
    for (const TensorMap& chunk : Chunks(outputs[0], options_.chunk_rows)) {
      answer.parts.push_back(JoinBatch(*signature_, {chunk}, {}));
    }
  } else if (options_.output.pooling != Pooling::kNone) {
    answer.parts = {Stacked(outputs)};  // vectors have no padding, and the batch always first
  } else {
    answer.parts = {JoinBatch(*signature_, outputs, padded_)};
  }
  const bool with_tokens = std::find(answer.outputs.begin(), answer.outputs.end(), kTokensOutput) !=
                           answer.outputs.end();
  for (TensorMap& part : answer.parts) {
    if (with_tokens) part[kTokensOutput] = Tensor::FromInts({std::ssize(tokens)}, tokens);
    size_t bytes = 0;
    for (const auto& [name, tensor] : part) bytes += tensor.byte_size();
    if (std::cmp_less_equal(bytes, max_bytes_)) continue;
    return absl::ResourceExhaustedError(
        "the answer has " + std::to_string(bytes) + " bytes, at most " +
        std::to_string(max_bytes_) +
        " fit into a message (max_message_bytes): send fewer sequences, ask for pooling or dtype "
        "INT8, or stream it in parts (parameter chunk_rows of ModelStreamInfer)");
  }
  answer.sending = TraceSending(context_);
  return answer;
}

}  // namespace linserve
