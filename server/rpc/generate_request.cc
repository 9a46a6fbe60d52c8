#include "rpc/generate_request.h"

#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "rpc/admission.h"
#include "rpc/convert.h"
#include "rpc/message_answer.h"
#include "rpc/tokenization.h"

namespace linserve {
namespace {

std::string NewSessionId() {
  static std::atomic<uint64_t> counter = 0;
  return kOwnSessionIds + std::to_string(++counter);
}

absl::Status WrongOption(const std::string& what) {
  return absl::InvalidArgumentError("options." + what);
}

absl::StatusOr<GenerationOptions> ToOptions(const v1::GenerateOptions& message) {
  if (!std::isfinite(message.temperature()) || message.temperature() < 0) {
    return WrongOption("temperature: expected 0 (the likeliest token) or more");
  }
  if (!(message.top_p() >= 0 && message.top_p() <= 1)) {
    return WrongOption("top_p: expected 0 to 1, of which 0 and 1 keep all tokens");
  }
  GenerationOptions options;
  options.sampling = {.temperature = message.temperature(),
                      .top_k = message.top_k(),
                      .top_p = message.top_p() == 0 ? 1 : message.top_p(),
                      .seed = message.seed()};
  options.max_tokens = message.max_tokens();
  options.stop_tokens.assign(message.stop_tokens().begin(), message.stop_tokens().end());
  return options;
}

// All inputs but what a text becomes.
absl::StatusOr<Item> PromptOf(const std::shared_ptr<const v1::GenerateRequest>& message,
                              const ModelInfo& info) {
  Item item;
  for (const auto& [name, tensor] : message->inputs()) {
    auto converted = ToTensor(tensor, name, message);
    if (!converted.ok()) return converted.status();
    item.inputs[name] = *std::move(converted);
  }
  const std::string& name = ChunkInput(info.signature).name;
  if (message->token_ids_size() > 0) {
    item.inputs[name] = Tensor::FromInts(
        {message->token_ids_size()}, {message->token_ids().begin(), message->token_ids().end()});
  } else if (!item.inputs.contains(name) && (!message->has_text() || name != kTextBecomes)) {
    return absl::InvalidArgumentError("there is no prompt: expected text or token_ids");
  }
  if (message->has_text() && item.inputs.contains(kTextBecomes)) {
    return absl::InvalidArgumentError(
        "the prompt is given more than once: expected either text or token_ids");
  }
  return item;
}

int64_t PromptTokens(const Signature& signature, const Item& item) {
  const auto prompt = item.inputs.find(ChunkInput(signature).name);
  return prompt == item.inputs.end() ? 0 : prompt->second.elements();
}

void DropLastToken(Item& prompt) {
  Tensor& ids = prompt.inputs.at(kTextBecomes);
  if (ids.elements() > 1) ids = ids.Rows(0, ids.elements() - 1);
}

}  // namespace

GenerateRequestState::GenerateRequestState(CallSide side, RequestContext context)
    : side_(std::move(side)), context_(std::move(context)) {
  side_.metrics.Started();
}

GenerateRequestState::~GenerateRequestState() {
  if (status_.ok() && side_.outbox.cancelled()) status_ = absl::CancelledError("the caller left");
  side_.metrics.Finished(static_cast<int>(status_.code()), Age());
  RequestEnded(context_, side_.metrics.rpc(), model_name_, 1, status_);
  side_.finish(status_);
}

void GenerateRequestState::Submit(ServiceContext& service, v1::GenerateRequest message) {
  const absl::Status status = Begin(service, std::move(message));
  if (!status.ok()) Refuse(status);
}

void GenerateRequestState::Refuse(const absl::Status& status) {
  status_ = status;
  generation_.reset();  // which holds this
  if (model_metrics_ != nullptr) model_metrics_->statistics().Failed(Age());
}

absl::Status GenerateRequestState::Begin(ServiceContext& service, v1::GenerateRequest message) {
  const auto model = FindModel(service, *context_.caller, message.model(), message.version());
  if (!model.ok()) return model.status();
  model_name_ = (*model)->name;
  model_metrics_ = &(*model)->engine->metrics();
  auto options = ToOptions(message.options());
  absl::Status status = Generation::Check((*model)->engine->info());
  if (status.ok()) status = options.status();
  if (!status.ok()) {
    model_metrics_->Rejected(RejectReason::kInvalid);
    return status;
  }
  auto place =
      Reserve(service, *context_.caller, **model, static_cast<int64_t>(message.ByteSizeLong()));
  if (!place.ok()) return place.status();
  place_ = *std::move(place);
  const Priority priority = context_.caller->Allowed(PriorityFromLevel(message.priority()));
  const auto owner = std::make_shared<const v1::GenerateRequest>(std::move(message));
  auto prompt = PromptOf(owner, (*model)->engine->info());
  Tokenization work{.model = *model,
                    .owner = owner,
                    .truncation = Truncation::kNone,
                    .max_text_bytes = service.limits.max_text_bytes,
                    .abandoned = [self = shared_from_this()] { return self->Abandoned(); }};
  work.items.push_back(std::move(prompt));
  from_text_ = owner->has_text();
  if (from_text_) work.texts.push_back({0, owner->text()});
  work.done = [self = shared_from_this(), served = *model, options = *std::move(options),
               priority](std::vector<absl::StatusOr<Item>> items) mutable {
    const absl::Status taken =
        self->Enqueue(*served, std::move(items[0]), std::move(options), priority);
    if (!taken.ok()) self->Refuse(taken);
  };
  Tokenize(service.tokenizers, std::move(work));
  return absl::OkStatus();
}

absl::Status GenerateRequestState::Enqueue(const ServedModel& model, absl::StatusOr<Item> prompt,
                                           GenerationOptions options, Priority priority) {
  if (!prompt.ok()) return prompt.status();
  if (model.tokenizer != nullptr) {
    text_.emplace(model.tokenizer);
    if (from_text_ && model.tokenizer->end_mark()) DropLastToken(*prompt);  // the text goes on
  }
  prompt_tokens_ = PromptTokens(model.engine->info().signature, *prompt);
  // The engine owns the generation, and with it this request, until the last token.
  auto item = Generation::Begin(model.engine->info(), NewSessionId(), std::move(prompt->inputs),
                                std::move(options),
                                [self = shared_from_this()](int64_t token) { self->Send(token); });
  if (!item.ok()) {
    model_metrics_->Rejected(RejectReason::kInvalid);
    return item.status();
  }
  generation_ = std::static_pointer_cast<Generation>(item->then);
  Request request;
  request.id = context_.id;
  request.trace_id = context_.trace_id;
  request.caller = context_.caller->name();
  request.deadline = context_.deadline;
  request.priority = priority;
  request.sink = shared_from_this();
  request.items.push_back(std::move(item));
  absl::Status status = ReserveResults(model, request.items, place_);
  return status.ok() ? model.engine->Submit(request) : status;
}

void GenerateRequestState::Send(int64_t token) {
  if (generation_->generated() == 1) side_.metrics.FirstResponse(Age());
  model_metrics_->Generated();
  v1::GenerateResponse message;
  message.add_token_ids(static_cast<uint32_t>(token));
  if (text_) message.set_text(text_->Add(token));
  Push(std::move(message));
}

void GenerateRequestState::Push(v1::GenerateResponse message) {
  message.set_request_id(context_.id);
  const std::shared_ptr<void> kept(
      nullptr, [self = shared_from_this(), sending = TraceSending(context_)](void*) {});
  side_.outbox.Push(std::make_unique<MessageAnswer>(message, kept));
}

void GenerateRequestState::Deliver(size_t /*index*/, absl::StatusOr<ItemResult> result) {
  const auto self = shared_from_this();
  const std::shared_ptr<Generation> generation = std::move(generation_);
  if (!result.ok()) return Refuse(result.status());
  model_metrics_->statistics().Succeeded(result->timing, 1, Age());
  v1::GenerateResponse message;
  message.set_last(true);
  if (text_) message.set_text(text_->Rest());
  message.set_finish_reason(std::string(Name(generation->reason())));
  message.set_prompt_tokens(static_cast<uint64_t>(prompt_tokens_));
  message.set_generated_tokens(static_cast<uint64_t>(generation->generated()));
  Push(std::move(message));
}

}  // namespace linserve
