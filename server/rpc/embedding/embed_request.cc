#include "rpc/embedding/embed_request.h"

#include <utility>

#include "rpc/calls/message_answer.h"
#include "rpc/embedding/convert.h"
#include "serving/admission.h"

namespace linserve {

EmbedRequestState::EmbedRequestState(CallSide call, Output output, RequestContext context)
    : RequestState(std::move(call), std::move(context)), output_(std::move(output)) {
  chunks_.request_id = context_.id;
}

void EmbedRequestState::Submit(ServiceContext& service, Received<v1::EmbedRequest> request) {
  if (request.place) TakeOver(*std::move(request.place));
  message_ = std::make_shared<const v1::EmbedRequest>(std::move(request.message));
  RequestState::Submit(service,
                       FindModel(service, *context_.caller, message_->model(), message_->version()),
                       request.bytes);
  message_.reset();
}

void EmbedRequestState::Submit(ServiceContext& service, v1::EmbedRequest request, Upload& upload) {
  TakeOver(upload.TakePlace());
  rows_ = upload.TakeRows();
  Submit(service, {.message = std::move(request)});
}

absl::Status EmbedRequestState::ReadOptions(const RpcLimits& limits, const ServedModel& model) {
  if (absl::Status status = CheckCount(message_->sequences_size(), limits); !status.ok()) {
    return status;
  }
  if (absl::Status status =
          CheckOutputCount(model.engine->info().signature, message_->options().outputs_size());
      !status.ok()) {
    return status;
  }
  auto options = ToOptions(message_->options(), model.default_pooling, model.default_normalize);
  if (!options.ok()) return options.status();
  options_ = *std::move(options);
  const auto truncation = ToTruncation(message_->options().truncation());
  if (!truncation.ok()) return truncation.status();
  truncation_ = *truncation;
  prompt_name_ = message_->options().prompt_name();
  chunks_.rows_per_chunk = message_->options().rows_per_chunk();
  chunks_.together = message_->options().together();
  chunks_.chunk_bytes = limits.chunk_bytes;
  // Rows take half of a message at most, which leaves room for the ids and names beside them.
  chunks_.max_bytes = limits.max_message_bytes / 2;
  priority_ = PriorityFromLevel(message_->priority());
  return absl::OkStatus();
}

absl::Status EmbedRequestState::ReadItems(Tokenization& work) {
  const auto count = static_cast<size_t>(message_->sequences_size());
  if (absl::Status status = ReserveItems(*work.model, count); !status.ok()) return status;
  work.owner = message_;
  work.truncation = truncation_.value_or(work.truncation);
  for (const v1::Sequence& sequence : message_->sequences()) {
    if (sequence.has_text()) work.texts.push_back({work.items.size(), sequence.text()});
    work.items.push_back(ReadItem(sequence));
    sequence_ids_.push_back(sequence.id());
  }
  unanswered_ = work.items.size();
  return absl::OkStatus();
}

absl::StatusOr<Item> EmbedRequestState::ReadItem(const v1::Sequence& sequence) {
  auto item = ToItem(sequence, options_, message_);
  if (!item.ok()) return item;
  item->report_progress = message_->options().progress();
  if (rows_) {
    item->inputs["x"] = *std::move(rows_);
  } else if (sequence.total_rows() > 0 || sequence.first_row() > 0) {
    return absl::InvalidArgumentError(
        "total_rows or first_row is set: a sequence in chunks is a request of its own, and "
        "EmbedStream takes it");
  }
  return item;
}

void EmbedRequestState::AnswerRefusal(const absl::Status& status) {
  if (output_.answered) output_.answered();
  if (output_.refuse) output_.refuse(status, shared_from_this());
}

void EmbedRequestState::CountForStatistics(const absl::StatusOr<ItemResult>& last) {
  if (computed_ == 0) return Failed();
  Succeeded(last.ok() ? last->timing : Timing{}, computed_);
}

void EmbedRequestState::Report(size_t index, const ItemProgress& progress) {
  // A slow reader has at most one message of progress to read.
  if (progress_unsent_.exchange(true)) return;
  Guard([&] {
    SendProgress(index, progress);
    return absl::OkStatus();
  });
}

void EmbedRequestState::SendProgress(size_t index, const ItemProgress& progress) {
  v1::EmbedResponse message;
  message.set_request_id(context_.id);
  message.set_index(static_cast<uint32_t>(index));
  message.set_sequence_id(sequence_ids_[index]);
  ToMessage(progress, *message.mutable_progress());
  const std::shared_ptr<void> sent(
      nullptr, [this, self = shared_from_this()](void*) { progress_unsent_ = false; });
  output_.outbox.PushNotice(std::make_unique<MessageAnswer>(message, sent));
}

void EmbedRequestState::TakeResult(size_t index, absl::StatusOr<ItemResult> result) {
  if (!responded_.exchange(true)) metrics().FirstResponse(Age());
  const bool computed = result.ok();
  if (computed) ++computed_;
  // The answer keeps this alive, and its end is the answer's. If the caller has left by then, the
  // answer was dropped.
  const std::shared_ptr<void> answer(nullptr, [this, computed, sent = UntilSent()](void*) {
    if (computed && Abandoned()) model_metrics().Abandoned(AbandonStage::kStream);
  });
  if (--unanswered_ == 0) {
    CountForStatistics(result);
    if (output_.answered) output_.answered();
  }
  output_.outbox.Push(std::make_unique<ResultChunker>(chunks_, index, sequence_ids_[index],
                                                      std::move(result), answer));
}

}  // namespace linserve
