#include "rpc/embedding/generate_request.h"

#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "rpc/calls/message_answer.h"
#include "rpc/embedding/convert.h"
#include "serving/admission.h"

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
  options.stop_tokens = {message.stop_tokens().begin(), message.stop_tokens().end()};
  return options;
}

// Returns the prompt with all inputs but what a text becomes.
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
    item.inputs[name] = ToTensor(message->token_ids());
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

// Sends the tokens that have come until it is their turn.
class GenerateRequestState::Tokens : public Answer {
 public:
  Tokens(GenerateRequestState& request, std::shared_ptr<void> keep_alive)
      : request_(request), keep_alive_(std::move(keep_alive)) {}

  bool Next(WireMessage& message) override {
    message.Add(request_.TakeUnsent());
    return true;
  }

 private:
  GenerateRequestState& request_;
  const std::shared_ptr<void> keep_alive_;  // the request
};

void GenerateRequestState::Submit(ServiceContext& service, Received<v1::GenerateRequest> request) {
  if (request.place) TakeOver(*std::move(request.place));
  message_ = std::make_shared<const v1::GenerateRequest>(std::move(request.message));
  RequestState::Submit(service,
                       FindModel(service, *context_.caller, message_->model(), message_->version()),
                       request.bytes);
  message_.reset();
}

absl::Status GenerateRequestState::ReadOptions(const RpcLimits& /*limits*/,
                                               const ServedModel& model) {
  absl::Status status = Generation::Check(model.engine->info());
  if (!status.ok()) return status;
  auto options = ToOptions(message_->options());
  if (!options.ok()) return options.status();
  options_ = *std::move(options);
  priority_ = PriorityFromLevel(message_->priority());
  return absl::OkStatus();
}

absl::Status GenerateRequestState::ReadItems(Tokenization& work) {
  if (absl::Status status = ReserveItems(*work.model, 1); !status.ok()) return status;
  work.owner = message_;
  work.reading.prompt.clear();          // it is for vectors
  work.truncation = Truncation::kNone;  // after a prompt as long as the model takes nothing follows
  work.reading.most_tokens = 0;
  auto prompt = PromptOf(message_, work.model->engine->info());
  if (!prompt.ok()) return prompt.status();
  from_text_ = message_->has_text();
  if (from_text_) work.texts.push_back({0, message_->text()});
  work.items.push_back(std::move(prompt));
  return absl::OkStatus();
}

absl::Status GenerateRequestState::Prepare(const ServedModel& model,
                                           std::vector<absl::StatusOr<Item>>& items) {
  auto& prompt = items[0];
  if (!prompt.ok()) return prompt.status();
  if (model.tokenizer != nullptr) {
    text_.emplace(model.tokenizer);
    if (from_text_ && model.tokenizer->end_mark()) DropLastToken(*prompt);  // the text goes on
  }
  prompt_tokens_ = PromptTokens(model.engine->info().signature, *prompt);
  // The engine owns the generation, and with it this request, until the last token.
  const auto self = shared_from_this();
  prompt = Generation::Begin(model.engine->info(), NewSessionId(), std::move(prompt->inputs),
                             std::move(options_),
                             [this, self](int64_t token) { Guard([&] { return Send(token); }); });
  if (!prompt.ok()) {
    model_metrics().Rejected(RejectReason::kInvalid);
    return prompt.status();
  }
  MutexLock lock(mutex_);
  generation_ = std::static_pointer_cast<Generation>(prompt->then);
  return absl::OkStatus();
}

void GenerateRequestState::AnswerRefusal(const absl::Status& /*status*/) { TakeGeneration(); }

// Lets go of the generation, which sends nothing from then on.
std::shared_ptr<Generation> GenerateRequestState::TakeGeneration() {
  MutexLock lock(mutex_);
  return std::move(generation_);
}

// Tokens that a slow reader has not read yet go together, so that each takes a few bytes; the
// messages that they make are added to the request's place.
absl::Status GenerateRequestState::Send(int64_t token) {
  constexpr int kTokensPerMessage = 1024;
  constexpr int64_t kMessageBytes = 16 << 10;
  bool is_new = false;
  {
    MutexLock lock(mutex_);
    if (generation_ == nullptr) return absl::OkStatus();
    if (generation_->generated() == 1) metrics().FirstResponse(Age());
    model_metrics().Generated();
    is_new = unsent_.empty() || unsent_.back().token_ids_size() == kTokensPerMessage;
    if (is_new) unsent_.emplace_back();
    if (std::ssize(unsent_) > reserved_) {
      absl::Status status = ReserveBytes(kMessageBytes);
      if (!status.ok()) return status;
      ++reserved_;
    }
    v1::GenerateResponse& message = unsent_.back();
    message.add_token_ids(static_cast<uint32_t>(token));
    if (text_) message.mutable_text()->append(text_->Add(token));
  }
  if (is_new) outbox_.Push(std::make_unique<Tokens>(*this, UntilSent()));
  return absl::OkStatus();
}

v1::GenerateResponse GenerateRequestState::TakeUnsent() {
  MutexLock lock(mutex_);
  v1::GenerateResponse message = std::move(unsent_.front());
  unsent_.pop_front();
  message.set_request_id(context_.id);
  return message;
}

void GenerateRequestState::TakeResult(size_t /*index*/, absl::StatusOr<ItemResult> result) {
  const auto self = shared_from_this();
  const std::shared_ptr<Generation> generation = TakeGeneration();
  if (!result.ok()) return Refuse(result.status());
  Succeeded(result->timing, 1);
  AlsoComputed(result->position - result->tokens);  // in the chunks before the last
  v1::GenerateResponse message;
  message.set_last(true);
  if (text_) message.set_text(text_->Rest());
  message.set_finish_reason(std::string(Name(generation->reason())));
  message.set_prompt_tokens(static_cast<uint64_t>(prompt_tokens_));
  message.set_generated_tokens(static_cast<uint64_t>(generation->generated()));
  message.set_request_id(context_.id);
  outbox_.Push(std::make_unique<MessageAnswer>(message, UntilSent()));
}

}  // namespace linserve
