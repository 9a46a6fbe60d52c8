#include "rpc/embedding/embed_stream_call.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "core/strings/quote.h"
#include "rpc/calls/call_context.h"
#include "rpc/calls/received.h"
#include "serving/admission.h"

namespace linserve {

absl::Status EmbedStreamCall::Handle(grpc::ByteBuffer& bytes) {
  const RequestHead head = HeadOf(bytes);
  const auto size = static_cast<int64_t>(bytes.Length());
  const Rest rest = head.later_chunk && !head.id_cut ? RestOf(head.id) : Rest::kNone;
  // The first chunk owes what all chunks of its sequence cost, so later chunks are only identified.
  Arrival arrival =
      rest == Rest::kAwaited ? Identify(service_, *context_) : Admit(service_, *context_, size);
  RequestContext& context = arrival.context;
  if (context.caller == nullptr) return arrival.admitted;
  context.id = head.id;
  Received<v1::EmbedRequest> received;
  absl::Status& status = arrival.admitted;
  if (rest == Rest::kAwaited) {
    status = ReserveChunk(head.id, bytes);
  } else if (status.ok()) {
    status = Reserve(service_, *context.caller, bytes, received);
  }
  if (!status.ok()) {
    bytes.Clear();
    RefuseUnread(head, rest, context, status);
    return absl::OkStatus();
  }
  absl::Status parsed = Parse(bytes, received.message);
  if (!parsed.ok()) return parsed;
  if (head.later_chunk) {
    AddChunk(context, received.message);
  } else if (const absl::Status claimed = Claim(context.id); !claimed.ok()) {
    if (head.chunk) DropRest(context.id);
    Refuse(context, /*claimed=*/false, claimed);
  } else if (head.chunk) {
    BeginUpload(context, std::move(received), size);
  } else {
    NewState(context, /*claimed=*/true)->Submit(service_, std::move(received));
  }
  return absl::OkStatus();
}

// Reserves what a chunk of an upload takes while it is read.
absl::Status EmbedStreamCall::ReserveChunk(const std::string& id, const grpc::ByteBuffer& bytes) {
  const auto decoded = DecodedBytes(service_, bytes, MessagePlan::Of<v1::EmbedRequest>());
  if (!decoded.ok()) return decoded.status();
  MutexLock lock(uploads_mutex_);
  const auto found = uploads_.find(id);
  if (found == uploads_.end() || found->second.upload == nullptr) return absl::OkStatus();
  Uploading& uploading = found->second;
  // The first chunk has paid for others of its kind. These may be larger, or more.
  uploading.came += static_cast<int64_t>(bytes.Length());
  if (const int64_t more = uploading.came - uploading.paid; more > 0) {
    uploading.context.caller->Owe(more);
    uploading.paid = uploading.came;
  }
  return uploading.upload->ReserveChunk(*decoded);
}

// Refuses a message of which no more than its head was read. The rest of a sequence that was
// refused before has had its answer, and to a chunk too many of one that is computed the answer
// would be taken for the sequence's.
void EmbedStreamCall::RefuseUnread(const RequestHead& head, Rest rest, RequestContext& context,
                                   const absl::Status& status) {
  if (rest == Rest::kDropped || (head.later_chunk && head.id_cut)) return RequestFinished();
  if (rest == Rest::kAwaited) return EndUpload(head.id, status);
  // An id that was cut is perhaps another request's.
  const bool claimed = !head.id_cut && Claim(head.id).ok();
  if (head.later_chunk && !claimed) return RequestFinished();
  if (head.chunk && !head.id_cut) DropRest(head.id);
  Refuse(context, claimed, status);
}

// Refuses an upload of which a chunk cannot be taken.
void EmbedStreamCall::EndUpload(const std::string& id, const absl::Status& status) {
  Uploading ended;
  {
    MutexLock lock(uploads_mutex_);
    const auto place = uploads_.find(id);
    if (place != uploads_.end()) ended = Take(place, /*more_comes=*/true);
  }
  if (ended.upload == nullptr) return RequestFinished();  // it has been given up meanwhile
  Refuse(ended.context, /*claimed=*/true, status);
}

EmbedStreamCall::Rest EmbedStreamCall::RestOf(const std::string& id) {
  MutexLock lock(uploads_mutex_);
  const auto place = uploads_.find(id);
  if (place == uploads_.end()) return Rest::kNone;
  return place->second.upload == nullptr ? Rest::kDropped : Rest::kAwaited;
}

// Refuses the uploads that are not complete: their missing chunks will not come any more.
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
  const auto self = shared_from_this();
  if (!paused()) Guard([this] { GiveUpIdle(); });  // chunks that have come may wait to be read
}

// Refuses the uploads of which no chunk has come for too long.
void EmbedStreamCall::GiveUpIdle() {
  const TimePoint now = std::chrono::steady_clock::now();
  const auto pause = service_.limits.max_upload_pause;
  std::vector<Uploading> idle;
  {
    MutexLock lock(uploads_mutex_);
    for (auto place = uploads_.begin(); place != uploads_.end(); ++place) {
      if (place->second.upload == nullptr || now - place->second.last_chunk <= pause) continue;
      idle.push_back(Take(place, /*more_comes=*/true));
      RequestStarted();  // before the stream could end because nothing is open
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

// Makes the state that answers a request. `claimed` says that the id is the request's own.
std::shared_ptr<EmbedRequestState> EmbedStreamCall::NewState(const RequestContext& context,
                                                             bool claimed) {
  // The id is freed before the caller can have read the last answer, and use the id again.
  const std::string& id = context.id;
  return std::make_shared<EmbedRequestState>(
      CallSide{.call = shared_from_this(),
               .metrics = metrics_,
               .abandoned = [this] { return outbox_.cancelled(); },
               .ended = [this](const absl::Status&) { RequestFinished(); },
               .broken = [this](const absl::Status& fault) { Abort(fault); }},
      EmbedRequestState::Output{
          .outbox = outbox_,
          .refuse =
              [this, id](const absl::Status& fault, std::shared_ptr<void> keep_alive) {
                outbox_.Push(ResultChunker::RequestFailed(id, fault, std::move(keep_alive)));
              },
          .answered =
              [this, id, claimed] {
                MutexLock lock(ids_mutex_);
                if (claimed) ids_.erase(id);
              }},
      context);
}

void EmbedStreamCall::Refuse(const RequestContext& context, bool claimed,
                             const absl::Status& status) {
  NewState(context, claimed)->Refuse(status);
}

// Begins an upload with the first chunk of a sequence.
void EmbedStreamCall::BeginUpload(const RequestContext& context,
                                  Received<v1::EmbedRequest> received, int64_t size) {
  v1::Sequence& rest = *received.message.mutable_sequences(0);
  v1::EmbedRequest first;
  v1::Sequence& chunk = *first.add_sequences();
  chunk.set_total_rows(rest.total_rows());
  chunk.mutable_token_ids()->Swap(rest.mutable_token_ids());
  if (rest.has_x()) chunk.mutable_x()->Swap(rest.mutable_x());
  rest.clear_x();
  Uploading uploading{context, std::move(received.message), nullptr,
                      std::chrono::steady_clock::now()};
  uploading.paid = WholeSize(first, size);
  uploading.came = size;
  const int64_t owed = uploading.paid - size;
  absl::Status status = OpenUpload(uploading, *std::move(received.place), received.bytes);
  if (!status.ok()) {
    if (!IsLast(chunk)) DropRest(context.id);
    return Refuse(context, /*claimed=*/true, status);
  }
  context.caller->Owe(owed);
  {
    MutexLock lock(uploads_mutex_);
    uploads_[context.id] = std::move(uploading);
  }
  AddChunk(context, first);
}

absl::Status EmbedStreamCall::OpenUpload(Uploading& uploading, Inflight::Reservation place,
                                         int64_t bytes) {
  int64_t open = 0;
  {
    MutexLock lock(uploads_mutex_);
    open = std::count_if(uploads_.begin(), uploads_.end(),
                         [](const auto& entry) { return entry.second.upload != nullptr; });
  }
  if (open >= service_.limits.max_requests_per_stream) {
    return absl::ResourceExhaustedError(
        "at most " + std::to_string(service_.limits.max_requests_per_stream) +
        " sequences may come in chunks at a time (max_requests_per_stream)");
  }
  const v1::EmbedRequest& request = uploading.request;
  const v1::Sequence& sequence = request.sequences(0);
  if (sequence.has_session() || sequence.has_text()) {
    return absl::InvalidArgumentError(
        "a sequence in chunks is no text and no chunk of a session, which come as a whole");
  }
  const Caller& caller = *uploading.context.caller;
  const auto model = FindModel(service_, caller, request.model(), request.version());
  if (!model.ok()) return model.status();
  auto upload = Upload::Begin((*model)->engine->info().signature, sequence.total_rows());
  if (!upload.ok()) return upload.status();
  absl::Status reserved = ReserveMore(**model, (*upload)->bytes(), place);
  // What the first chunk leaves when its rows are taken is what later chunks may take.
  const int64_t chunk = bytes - static_cast<int64_t>(request.SpaceUsedLong());
  if (reserved.ok()) reserved = (*upload)->Hold(std::move(place), chunk);
  if (!reserved.ok()) return reserved;
  uploading.upload = *std::move(upload);
  return absl::OkStatus();
}

void EmbedStreamCall::AddChunk(const RequestContext& context, const v1::EmbedRequest& request) {
  absl::Status status;
  std::optional<Uploading> ended;
  bool known = false;
  {
    MutexLock lock(uploads_mutex_);
    known = Add(context.id, request.sequences(0), status, ended);
  }
  const bool last = IsLast(request.sequences(0));
  if (!known && Claim(context.id).ok()) {
    if (!last) DropRest(context.id);
    return Refuse(context, /*claimed=*/true,
                  absl::InvalidArgumentError(
                      "no sequence has begun with this request_id: the first chunk of one has "
                      "total_rows, and first_row 0"));
  }
  if (!ended) return RequestFinished();
  if (!status.ok()) return Refuse(ended->context, /*claimed=*/true, status);
  NewState(ended->context, /*claimed=*/true)
      ->Submit(service_, std::move(ended->request), *ended->upload);
}

bool EmbedStreamCall::Add(const std::string& id, const v1::Sequence& chunk, absl::Status& status,
                          std::optional<Uploading>& ended) {
  const auto place = uploads_.find(id);
  if (place == uploads_.end()) return false;
  Uploading& uploading = place->second;
  if (uploading.upload == nullptr) {
    if (IsLast(chunk)) uploads_.erase(place);
    return true;
  }
  uploading.last_chunk = std::chrono::steady_clock::now();
  status = uploading.upload->Add(chunk);
  if (!status.ok() || uploading.upload->complete()) {
    ended = Take(place, /*more_comes=*/!IsLast(chunk));
  }
  return true;
}

// Takes out an upload whose end is known; what still comes of it is dropped.
EmbedStreamCall::Uploading EmbedStreamCall::Take(Uploads::iterator place, bool more_comes) {
  Uploading taken;
  std::swap(taken, place->second);
  if (!more_comes) uploads_.erase(place);
  return taken;
}

// Drops the chunks that follow the first one of a request that is refused.
void EmbedStreamCall::DropRest(const std::string& id) {
  MutexLock lock(uploads_mutex_);
  if (std::ssize(uploads_) >= 2 * service_.limits.max_requests_per_stream) {
    std::erase_if(uploads_, [](const auto& entry) { return entry.second.upload == nullptr; });
  }
  uploads_.try_emplace(id);
}

}  // namespace linserve
