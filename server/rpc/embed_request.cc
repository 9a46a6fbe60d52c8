#include "rpc/embed_request.h"

#include <algorithm>
#include <utility>

#include "rpc/admission.h"
#include "rpc/convert.h"
#include "rpc/message_answer.h"
#include "rpc/tokenization.h"
#include "telemetry/trace.h"

namespace linserve {
namespace {

absl::Status CheckCount(int64_t count, const RpcLimits& limits) {
  if (count == 0) return absl::InvalidArgumentError("the request holds no sequences");
  if (count <= limits.max_sequences_per_request) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the request holds " + std::to_string(count) + " sequences, at most " +
      std::to_string(limits.max_sequences_per_request) +
      " are taken at once (max_sequences_per_request); send them in several requests");
}

}  // namespace

EmbedRequestState::EmbedRequestState(CallSide side, RequestContext context)
    : side_(std::move(side)), context_(std::move(context)) {
  chunks_.request_id = context_.id;
  side_.metrics->Started();
}

EmbedRequestState::~EmbedRequestState() {
  const TimePoint now = std::chrono::steady_clock::now();
  if (status_.ok() && now >= context_.deadline) {
    status_ = absl::DeadlineExceededError("the deadline passed");
  } else if (status_.ok() && side_.outbox->cancelled()) {
    status_ = absl::CancelledError("the caller left");
  }
  side_.metrics->Finished(static_cast<int>(status_.code()), now - context_.begin);
  RequestEnded(context_, side_.metrics->rpc(), model_name_, sequence_ids_.size(), status_);
  side_.finished();
}

void EmbedRequestState::Submit(ServiceContext& service, Received<v1::EmbedRequest> request,
                               Upload* upload) {
  const absl::Status status = Begin(service, std::move(request), upload);
  if (!status.ok()) Refuse(status);
}

absl::Status EmbedRequestState::Begin(ServiceContext& service, Received<v1::EmbedRequest> received,
                                      Upload* upload) {
  v1::EmbedRequest& message = received.message;
  if (message.request_id().size() > kLongestRequestId) {
    return absl::InvalidArgumentError("request_id is longer than " +
                                      std::to_string(kLongestRequestId) + " bytes");
  }
  auto model = FindModel(service, *context_.caller, message.model(), message.version());
  if (!model.ok()) return model.status();
  model_name_ = (*model)->name;
  model_metrics_ = &(*model)->engine->metrics();
  absl::Status status = CheckCount(message.sequences_size(), service.limits);
  auto options = ToOptions(message.options(), (*model)->default_pooling);
  if (status.ok()) status = options.status();
  const auto truncation = ToTruncation(message.options().truncation());
  if (status.ok()) status = truncation.status();
  if (!status.ok()) {
    model_metrics_->Rejected(RejectReason::kInvalid);
    return status;
  }
  chunks_.rows_per_chunk = message.options().rows_per_chunk();
  chunks_.chunk_bytes = service.limits.chunk_bytes;
  // Half of a message is room for the ids and names beside the rows.
  chunks_.max_bytes = service.limits.max_message_bytes / 2;
  if (upload != nullptr) {
    place_ = upload->TakePlace();
  } else {
    auto place = Reserve(service, *context_.caller, **model, received.bytes);
    if (!place.ok()) return place.status();
    place_ = *std::move(place);
  }

  // Tensors and texts view the message's bytes, so it lives as long as any of them.
  const auto owner = std::make_shared<const v1::EmbedRequest>(std::move(message));
  Request request;
  request.id = context_.id;
  request.trace_id = context_.trace_id;
  request.caller = context_.caller->name();
  request.deadline = context_.deadline;
  request.priority = context_.caller->Allowed(PriorityFromLevel(owner->priority()));
  request.sink = shared_from_this();
  Tokenization texts{.model = *model,
                     .owner = owner,
                     .truncation = *truncation,
                     .max_text_bytes = service.limits.max_text_bytes,
                     .abandoned = [self = shared_from_this()] { return self->Abandoned(); }};
  for (const v1::Sequence& sequence : owner->sequences()) {
    if (sequence.has_text()) texts.texts.push_back({texts.items.size(), sequence.text()});
    const auto place = static_cast<int>(sequence_ids_.size());
    sequence_ids_.push_back(sequence.id());
    absl::StatusOr<Item>& item =
        texts.items.emplace_back(ToItem(sequence, *options, owner, received.large, place));
    if (!item.ok()) continue;
    item->report_progress = owner->options().progress();
    if (upload != nullptr) {
      item->inputs["x"] = upload->TakeRows();
    } else if (sequence.total_rows() > 0 || sequence.first_row() > 0) {
      item = absl::InvalidArgumentError(
          "total_rows or first_row is set: a sequence in parts is a request of its own, and "
          "EmbedStream takes it");
    }
  }
  unanswered_ = texts.items.size();
  texts.done = [self = shared_from_this(), request = std::move(request),
                served = *model](std::vector<absl::StatusOr<Item>> items) mutable {
    request.items = std::move(items);
    const absl::Status taken = self->Enqueue(*served, std::move(request));
    if (!taken.ok()) self->Refuse(taken);
  };
  Tokenize(service.tokenizers, std::move(texts));
  return absl::OkStatus();
}

absl::Status EmbedRequestState::Enqueue(const ServedModel& model, Request request) {
  absl::Status status = ReserveResults(model, request.items, place_);
  return status.ok() ? model.engine->Submit(request) : status;
}

void EmbedRequestState::Refuse(const absl::Status& status) {
  status_ = status;
  if (model_metrics_ != nullptr) model_metrics_->statistics().Failed(Age());
  if (side_.answered) side_.answered();
  side_.refuse(status, shared_from_this());
}

std::chrono::nanoseconds EmbedRequestState::Age() const {
  return std::chrono::steady_clock::now() - context_.begin;
}

void EmbedRequestState::CountForStatistics(const absl::StatusOr<ItemResult>& last) {
  ModelStatistics& statistics = model_metrics_->statistics();
  if (computed_ == 0) return statistics.Failed(Age());
  statistics.Succeeded(last.ok() ? last->timing : Timing{}, computed_, Age());
}

// A slow reader has one such message to read at most.
void EmbedRequestState::Report(size_t index, const ItemProgress& progress) {
  if (progress_unsent_.exchange(true)) return;
  v1::EmbedResponse message;
  message.set_request_id(context_.id);
  message.set_index(static_cast<uint32_t>(index));
  message.set_sequence_id(sequence_ids_[index]);
  ToMessage(progress, *message.mutable_progress());
  const std::shared_ptr<void> sent(
      nullptr, [self = shared_from_this()](void*) { self->progress_unsent_ = false; });
  side_.outbox->PushNotice(std::make_unique<MessageAnswer>(message, sent));
}

void EmbedRequestState::Deliver(size_t index, absl::StatusOr<ItemResult> result) {
  if (!responded_.exchange(true)) side_.metrics->FirstResponse(Age());
  const bool computed = result.ok();
  if (computed) ++computed_;
  // What the answer keeps alive, whose end is the answer's: dropped if the caller has left by then.
  const std::shared_ptr<void> answer(
      nullptr, [self = shared_from_this(), computed, sending = TraceSending(context_)](void*) {
        if (computed && self->Abandoned()) self->model_metrics_->Abandoned(AbandonStage::kStream);
      });
  if (--unanswered_ == 0) {
    CountForStatistics(result);
    if (side_.answered) side_.answered();
  }
  side_.outbox->Push(std::make_unique<ResultChunker>(chunks_, index, sequence_ids_[index],
                                                     std::move(result), answer));
}

}  // namespace linserve
