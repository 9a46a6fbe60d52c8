#include "client/library/embed_attempt.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "client/library/embed_chunks.h"
#include "client/library/wire.h"

namespace linserve {
namespace {

using Reader = grpc::internal::ReaderInterface<v1::EmbedResponse>;

// Receives the answers. An error says what is wrong with them.
absl::Status Receive(Reader& reader, ResultAssembler& assembler, ResultCollector& collector,
                     ProgressReport& report, const std::function<void()>& on_answer) {
  const auto take = [&](v1::EmbedResponse&& response) -> absl::Status {
    if (response.request_failed()) {
      return absl::Status(static_cast<absl::StatusCode>(response.code()), response.message());
    }
    auto chunk = DecodeChunk(std::move(response));
    if (!chunk.ok()) return chunk.status();
    report.Received(*chunk);
    auto result = assembler.Add(*std::move(chunk));
    if (!result.ok()) return result.status();
    if (*result) collector.Take(**std::move(result));
    return absl::OkStatus();
  };
  v1::EmbedResponse message;
  absl::Status status;
  while (status.ok() && reader.Read(&message)) {
    on_answer();
    status = ForEachResponse(std::move(message), take);
  }
  return status;
}

// Cancels a call once nothing has happened for too long.
class PauseWatch {
 public:
  PauseWatch(grpc::ClientContext& context, const Activity& activity,
             std::chrono::milliseconds longest)
      : context_(context),
        activity_(activity),
        longest_(longest),
        thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

  // Makes the status one of the pause if that ended the call. REQUIRES: the call is over.
  absl::Status Judge(absl::Status status) const {
    if (!expired_ || status.ok()) return status;
    return absl::DeadlineExceededError("nothing has happened to the sequence for " +
                                       std::to_string(longest_.count()) + " ms");
  }

 private:
  void Watch(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      const auto end = activity_.last() + longest_;
      if (Activity::Clock::now() >= end) {
        expired_ = true;
        return context_.TryCancel();
      }
      stopped_.wait_until(lock, stop, end, [] { return false; });
    }
  }

  grpc::ClientContext& context_;
  const Activity& activity_;
  const std::chrono::milliseconds longest_;
  std::condition_variable_any stopped_;
  std::atomic<bool> expired_ = false;
  std::jthread thread_;  // ends first
};

absl::Status AttemptInParts(v1::EmbeddingService::Stub& stub, const EmbedCall& call,
                            std::chrono::milliseconds pause, Activity& activity,
                            ResultCollector& collector) {
  grpc::ClientContext context;
  activity.Note();
  PauseWatch watch(context, activity, pause);
  const auto stream = stub.EmbedStream(&context);
  ProgressReport report(call, collector.pending(), /*sent=*/false);
  std::jthread writer([&] {
    ChunkRequests chunks(call, collector.pending()[0]);
    while (const auto chunk = chunks.Next()) {
      if (!stream->Write(*chunk)) return;
      activity.Note();
      report.Sent(chunks.rows());
    }
    stream->WritesDone();
  });
  ResultAssembler assembler(1);
  const absl::Status broken =
      Receive(*stream, assembler, collector, report, [&] { activity.Note(); });
  if (!broken.ok()) context.TryCancel();
  writer.join();
  const absl::Status status = watch.Judge(ToAbsl(stream->Finish()));
  return collector.EndAttempt(broken.ok() ? status : broken, assembler);
}

}  // namespace

ResultCollector::ResultCollector(size_t sequences,
                                 const std::function<void(SequenceResult)>& on_result)
    : on_result_(on_result), pending_(sequences) {
  for (size_t i = 0; i < sequences; ++i) pending_[i] = i;
}

void ResultCollector::Take(SequenceResult result) {
  result.index = pending_[result.index];
  if (absl::IsUnavailable(result.status)) {
    unavailable_.push_back(std::move(result));
  } else {
    on_result_(std::move(result));
  }
}

absl::Status ResultCollector::EndAttempt(const absl::Status& status,
                                         const ResultAssembler& assembler) {
  std::vector<size_t> left;
  for (size_t place : assembler.Unanswered()) left.push_back(pending_[place]);
  unanswered_ = left.size();
  for (const SequenceResult& result : unavailable_) left.push_back(result.index);
  pending_ = std::move(left);
  if (!status.ok()) return status;
  if (unanswered_ > 0) {
    return absl::InternalError("the call ended without a result for " +
                               std::to_string(unanswered_) + " sequences");
  }
  return unavailable_.empty() ? absl::OkStatus() : unavailable_.front().status;
}

absl::Status ResultCollector::End(const absl::Status& status) {
  const bool answered = unanswered_ == 0 && !unavailable_.empty();
  for (SequenceResult& result : unavailable_) on_result_(std::move(result));
  return answered ? absl::OkStatus() : status;
}

absl::Status AttemptEmbed(v1::EmbeddingService::Stub& stub, const EmbedCall& call,
                          std::chrono::system_clock::time_point deadline,
                          std::chrono::milliseconds pause, Activity& activity,
                          ResultCollector& collector) {
  if (GoesInChunks(call, collector.pending())) {
    return AttemptInParts(stub, call, pause, activity, collector);
  }
  grpc::ClientContext context;
  context.set_deadline(deadline);
  const auto reader = stub.Embed(&context, EncodeRequest(call, collector.pending()));
  ProgressReport report(call, collector.pending(), /*sent=*/true);
  ResultAssembler assembler(collector.pending().size());
  const absl::Status broken = Receive(*reader, assembler, collector, report, [] {});
  if (!broken.ok()) context.TryCancel();
  const absl::Status status = ToAbsl(reader->Finish());
  return collector.EndAttempt(broken.ok() ? status : broken, assembler);
}

}  // namespace linserve
