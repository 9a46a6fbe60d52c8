#include "rpc/embed_stream_call.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "core/quote.h"
#include "rpc/admission.h"
#include "rpc/call_context.h"
#include "rpc/received.h"

namespace linserve {

absl::Status EmbedStreamCall::Handle(grpc::ByteBuffer& bytes) {
  const TimePoint begin = std::chrono::steady_clock::now();
  const auto caller = CallerOf(*context_, *service_.access);
  if (!caller.ok()) return caller.status();
  Received<v1::EmbedRequest> received;
  absl::Status parsed = Parse(bytes, received, LeastLargeField(service_));
  if (!parsed.ok()) return parsed;
  const v1::EmbedRequest& request = received.message;
  const RequestContext context{request.request_id(), DeadlineOf(*context_), *caller,
                               TraceIdOf(*context_), begin};
  if (IsLaterPart(request)) {
    AddPart(context, received);
    return absl::OkStatus();
  }
  const bool part = IsPart(request);
  // What the parts cost is spent with the first one.
  absl::Status status =
      AdmitCaller(service_, **caller, part ? WholeSize(request, received.bytes) : received.bytes);
  const absl::Status claimed = Claim(context.id);
  status.Update(claimed);
  if (!status.ok()) {
    if (part) DropRest(context.id);
    Refuse(context, claimed.ok(), status);
  } else if (part) {
    BeginUpload(context, std::move(received));
  } else {
    NewState(context, /*claimed=*/true)->Submit(service_, std::move(received));
  }
  return absl::OkStatus();
}

// Parts that are missing will not come any more.
void EmbedStreamCall::HandleEnd() {
  Uploads left;
  {
    MutexLock lock(uploads_mutex_);
    left.swap(uploads_);
  }
  if (ended() || context_->IsCancelled()) return;
  for (const auto& [id, uploading] : left) {
    if (uploading.upload == nullptr) continue;
    RequestStarted();
    Refuse(uploading.context, /*claimed=*/true, uploading.upload->Incomplete());
  }
}

void EmbedStreamCall::LookUp() {
  if (paused()) return;  // parts that have come may wait to be read
  const TimePoint now = std::chrono::steady_clock::now();
  const auto pause = service_.limits.max_upload_pause;
  std::vector<Uploading> idle;
  {
    MutexLock lock(uploads_mutex_);
    for (auto place = uploads_.begin(); place != uploads_.end(); ++place) {
      if (place->second.upload == nullptr || now - place->second.last_part <= pause) continue;
      idle.push_back(Take(place, /*more_comes=*/true));
      RequestStarted();  // before the stream's end can find nothing that is open
    }
  }
  for (const Uploading& uploading : idle) {
    Refuse(uploading.context, /*claimed=*/true, uploading.upload->Paused(pause));
  }
}

absl::Status EmbedStreamCall::Claim(const std::string& id) {
  MutexLock lock(ids_mutex_);
  if (ids_.insert(id).second) return absl::OkStatus();
  return absl::InvalidArgumentError("request_id " + Quoted(id) +
                                    " is in flight on this stream already");
}

// What answers a request. `claimed`: the id is its own.
std::shared_ptr<EmbedRequestState> EmbedStreamCall::NewState(const RequestContext& context,
                                                             bool claimed) {
  // Captures no reference to the call: the state's own keeps it alive until this has run.
  // The id is free before the caller can have read the last answer, and use it again.
  const std::string& id = context.id;
  CallSide side{.call = shared_from_this(),
                .outbox = &outbox_,
                .metrics = &metrics_,
                .refuse =
                    [this, id](const absl::Status& fault, std::shared_ptr<void> keep_alive) {
                      outbox_.Push(ResultChunker::RequestFailed(id, fault, std::move(keep_alive)));
                    },
                .answered =
                    [this, id, claimed] {
                      MutexLock lock(ids_mutex_);
                      if (claimed) ids_.erase(id);
                    },
                .finished = [this] { RequestFinished(); }};
  return std::make_shared<EmbedRequestState>(std::move(side), context);
}

void EmbedStreamCall::Refuse(const RequestContext& context, bool claimed,
                             const absl::Status& status) {
  NewState(context, claimed)->Refuse(status);
}

// With the first part of a sequence.
void EmbedStreamCall::BeginUpload(const RequestContext& context,
                                  Received<v1::EmbedRequest> received) {
  v1::Sequence& rest = *received.message.mutable_sequences(0);
  Received<v1::EmbedRequest> first{.large = std::move(received.large)};
  v1::Sequence& part = *first.message.add_sequences();
  part.set_total_rows(rest.total_rows());
  part.mutable_token_ids()->Swap(rest.mutable_token_ids());
  if (rest.has_x()) part.mutable_x()->Swap(rest.mutable_x());
  rest.clear_x();
  Uploading uploading{context, std::move(received.message), nullptr,
                      std::chrono::steady_clock::now()};
  absl::Status status = OpenUpload(uploading, received.bytes);
  if (!status.ok()) {
    if (!IsLast(part)) DropRest(context.id);
    return Refuse(context, /*claimed=*/true, status);
  }
  {
    MutexLock lock(uploads_mutex_);
    uploads_[context.id] = std::move(uploading);
  }
  AddPart(context, first);
}

absl::Status EmbedStreamCall::OpenUpload(Uploading& uploading, int64_t bytes) {
  int64_t open = 0;
  {
    MutexLock lock(uploads_mutex_);
    open = std::count_if(uploads_.begin(), uploads_.end(),
                         [](const auto& entry) { return entry.second.upload != nullptr; });
  }
  if (open >= service_.limits.max_requests_per_stream) {
    return absl::ResourceExhaustedError(
        "at most " + std::to_string(service_.limits.max_requests_per_stream) +
        " sequences may come in parts at a time (max_requests_per_stream)");
  }
  const v1::EmbedRequest& request = uploading.request;
  const v1::Sequence& sequence = request.sequences(0);
  if (sequence.has_session() || sequence.has_text()) {
    return absl::InvalidArgumentError(
        "a sequence in parts is no text and no chunk of a session, which come as a whole");
  }
  const Caller& caller = *uploading.context.caller;
  const auto model = FindModel(service_, caller, request.model(), request.version());
  if (!model.ok()) return model.status();
  auto upload = Upload::Begin((*model)->engine->info().signature, sequence.total_rows());
  if (!upload.ok()) return upload.status();
  auto place = Reserve(service_, caller, **model, bytes + (*upload)->bytes());
  if (!place.ok()) return place.status();
  if (absl::Status held = (*upload)->Hold(*std::move(place)); !held.ok()) return held;
  uploading.upload = *std::move(upload);
  return absl::OkStatus();
}

void EmbedStreamCall::AddPart(const RequestContext& context,
                              const Received<v1::EmbedRequest>& received) {
  absl::Status status;
  std::optional<Uploading> ended;
  bool known = false;
  {
    MutexLock lock(uploads_mutex_);
    known = Add(context.id, received, status, ended);
  }
  // Nobody has spent what it cost to read it.
  if (!known) AdmitCaller(service_, *context.caller, received.bytes).IgnoreError();
  const bool last = IsLast(received.message.sequences(0));
  // An id that is too long is not kept, and so answered once only by its last part.
  const bool answered = last || context.id.size() <= kLongestRequestId;
  if (!known && answered && Claim(context.id).ok()) {
    if (!last) DropRest(context.id);
    return Refuse(context, /*claimed=*/true,
                  absl::InvalidArgumentError(
                      "no sequence has begun with this request_id: the first part of one has "
                      "total_rows, and first_row 0"));
  }
  if (!ended) return RequestFinished();
  if (!status.ok()) return Refuse(ended->context, /*claimed=*/true, status);
  NewState(ended->context, /*claimed=*/true)
      ->Submit(service_, {.message = std::move(ended->request)}, ended->upload.get());
}

bool EmbedStreamCall::Add(const std::string& id, const Received<v1::EmbedRequest>& received,
                          absl::Status& status, std::optional<Uploading>& ended) {
  const v1::Sequence& part = received.message.sequences(0);
  const auto place = uploads_.find(id);
  if (place == uploads_.end()) return false;
  Uploading& uploading = place->second;
  if (uploading.upload == nullptr) {
    if (IsLast(part)) uploads_.erase(place);
    return true;
  }
  uploading.last_part = std::chrono::steady_clock::now();
  status = uploading.upload->Add(part, received.large);
  if (!status.ok() || uploading.upload->complete()) {
    ended = Take(place, /*more_comes=*/!IsLast(part));
  }
  return true;
}

// Its end is known; what still comes of it is dropped.
EmbedStreamCall::Uploading EmbedStreamCall::Take(Uploads::iterator place, bool more_comes) {
  Uploading taken = std::move(place->second);
  place->second = {};
  if (!more_comes) uploads_.erase(place);
  return taken;
}

// The parts after the first of a request that is refused.
void EmbedStreamCall::DropRest(const std::string& id) {
  if (id.size() > kLongestRequestId) return;  // is not kept: its last part is refused once more
  MutexLock lock(uploads_mutex_);
  if (std::ssize(uploads_) >= 2 * service_.limits.max_requests_per_stream) {
    std::erase_if(uploads_, [](const auto& entry) { return entry.second.upload == nullptr; });
  }
  uploads_.try_emplace(id);
}

}  // namespace linserve
