#include "serving/request.h"

#include <utility>

#include "core/threads/guarded.h"
#include "serving/admission.h"
#include "serving/prompts.h"
#include "telemetry/trace/trace.h"

namespace linserve {
namespace {

// Makes it the larger of the two, whoever else does so.
void Raise(std::atomic<std::chrono::nanoseconds>& most, std::chrono::nanoseconds time) {
  std::chrono::nanoseconds known = most;
  while (known < time && !most.compare_exchange_weak(known, time)) {
  }
}

}  // namespace

Sending::Sending(std::shared_ptr<RequestState> request)
    : request_(std::move(request)), traced_(TraceSending(request_->context_)) {}

void Sending::Failed(const absl::Status& status) { request_->status_ = status; }

RequestState::RequestState(CallSide call, RequestContext context)
    : context_(std::move(context)), call_(std::move(call)) {
  BeginTrace(context_.trace);
  call_.metrics.Started();
}

RequestState::~RequestState() {
  RunGuarded("the end of a request", [this] { Conclude(); });
  place_.reset();  // before the end lets the caller's next request in
  if (call_.ended) RunGuarded("the end of a request", [this] { call_.ended(status_); });
}

// Counts, logs and traces how the request ended.
void RequestState::Conclude() {
  const TimePoint now = std::chrono::steady_clock::now();
  if (broken_ || !begun_) {
    status_ = absl::ResourceExhaustedError("there is no memory for the request");
  } else if (status_.ok() && !answered_ && now >= context_.deadline) {
    status_ = absl::DeadlineExceededError("the deadline passed");
  } else if (status_.ok() && !answered_ && CallerLeft()) {
    status_ = absl::CancelledError("the caller left");
  }
  call_.metrics.Finished(static_cast<int>(status_.code()), now - context_.begin, model_name_,
                         context_.trace.sampled ? context_.trace.trace_id : "");
  if (metrics_ != nullptr) metrics_->Computed(context_.caller->name(), tokens_);
  RequestEnded(context_, {.method = call_.metrics.rpc(),
                          .model = model_name_,
                          .sequences = sequences_,
                          .tokens = tokens_,
                          .queue = queue_,
                          .compute = compute_,
                          .status = status_,
                          .faults = faults_,
                          .fault = fault_});
}

void RequestState::Submit(ServiceContext& service, const FoundModel& model, int64_t bytes) {
  begun_ = true;
  const absl::Status status = Guarded("the request", [&] { return Begin(service, model, bytes); });
  if (!status.ok()) Refuse(status);
}

void RequestState::Refuse(const absl::Status& status) {
  if (refused_.exchange(true)) return;
  begun_ = true;
  Guard([&] {
    status_ = status;
    if (model_metrics_ != nullptr && computes_) Failed();
    AnswerRefusal(status);
    return absl::OkStatus();
  });
}

void RequestState::Deliver(size_t index, absl::StatusOr<ItemResult> result) {
  if (result.ok()) {
    tokens_ += result->tokens;
    Raise(queue_, result->timing.queue);
    Raise(compute_, result->timing.batch + result->timing.compute);
  } else if (faults_++ == 0) {
    fault_ = result.status();
  }
  Guard([&] {
    TakeResult(index, std::move(result));
    return absl::OkStatus();
  });
}

void RequestState::Guard(absl::FunctionRef<absl::Status()> part) {
  const absl::Status status = Guarded("the request", part);
  if (status.ok() || broken_.exchange(true)) return;
  if (call_.broken) return call_.broken(status);
  Refuse(status);
}

absl::Status RequestState::Begin(ServiceContext& service, const FoundModel& model, int64_t bytes) {
  if (!model.ok()) return model.status();
  model_name_ = (*model)->name;
  model_metrics_ = (*model)->engine->metrics().shared_from_this();
  if (context_.caller->has_token()) metrics_ = &service.metrics;
  absl::Status status = ReadOptions(service.limits, **model);
  if (status.ok() && !place_) {
    auto place = Reserve(service, *context_.caller, **model, bytes, context_.body_bytes);
    if (!place.ok()) return place.status();
    place_ = *std::move(place);
  }
  auto prompt = PromptOf(**model, prompt_name_);
  if (status.ok()) status = prompt.status();
  Tokenization work{.model = *model,
                    .owner = nullptr,
                    .reading = {.task = TaskOf(prompt_name_),
                                .prompt = std::move(prompt).value_or(""),
                                .most_tokens = MostTextTokens(**model, TaskOf(prompt_name_))},
                    .truncation = (*model)->default_truncation,
                    .max_text_bytes = service.limits.max_text_bytes,
                    .caller = context_.caller->name(),
                    .deadline = context_.deadline,
                    .abandoned = [self = shared_from_this()] { return self->Abandoned(); }};
  if (status.ok()) status = ReadItems(work);
  if (status.ok() && !prompt_name_.empty() && work.texts.empty() && !work.items.empty()) {
    status =
        absl::InvalidArgumentError("'prompt_name': a prompt stands before texts, not token ids");
  }
  sequences_ = work.items.size();
  if (!status.ok()) {
    if (!absl::IsResourceExhausted(status)) model_metrics_->Rejected(RejectReason::kInvalid);
    return status;
  }
  work.reserve = [self = shared_from_this(), served = *model](int64_t ids) {
    return self->ReserveBytes(*served, ids);
  };
  work.done = [self = shared_from_this(), &service,
               served = *model](absl::StatusOr<std::vector<absl::StatusOr<Item>>> items) {
    const absl::Status taken =
        items.ok() ? self->Take(service, *served, *std::move(items)) : items.status();
    if (!taken.ok()) self->Refuse(taken);
  };
  return Tokenize(service.tokenizers, std::move(work));
}

absl::Status RequestState::Take(ServiceContext& /*service*/, const ServedModel& model,
                                std::vector<absl::StatusOr<Item>> items) {
  absl::Status status = Prepare(model, items);
  if (status.ok()) status = ReserveResults(model, items, 1 + text_bytes_, *place_);
  if (!status.ok()) return status;
  Request request;
  request.id = context_.id;
  request.trace = context_.trace;
  request.caller = context_.caller->name();
  request.deadline = context_.deadline;
  request.priority = context_.caller->Allowed(priority_);
  request.sink = shared_from_this();
  request.items = std::move(items);
  return model.engine->Submit(request);
}

void RequestState::Succeeded(const Timing& timing, size_t computed) {
  model_metrics_->statistics().Succeeded(timing, computed, Age());
}

void RequestState::Failed() { model_metrics_->statistics().Failed(Age()); }

absl::Status RequestState::CheckCount(int64_t sequences, const RpcLimits& limits) {
  if (sequences == 0) return absl::InvalidArgumentError("the request holds no sequences");
  if (sequences <= limits.max_sequences_per_request) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the request holds " + std::to_string(sequences) + " sequences, at most " +
      std::to_string(limits.max_sequences_per_request) +
      " are taken at once (max_sequences_per_request); send them in several requests");
}

absl::Status RequestState::ReserveItems(const ServedModel& model, size_t sequences) {
  // A sequence takes so much: an item, its place in the queue, its result and its answer.
  constexpr int64_t kBytesPerSequence = 2048;
  return ReserveBytes(model, static_cast<int64_t>(sequences) * kBytesPerSequence);
}

absl::Status RequestState::ReserveBytes(const ServedModel& model, int64_t bytes) {
  return ReserveMore(model, bytes, *place_);
}

}  // namespace linserve
