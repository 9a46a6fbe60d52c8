#include "client/embedding_client.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "client/channel.h"
#include "client/embed_call_reactor.h"
#include "client/grpc_embed_stream.h"
#include "client/grpc_status.h"
#include "client/health.h"
#include "client/infer_wire.h"
#include "client/result_assembler.h"
#include "client/wire.h"
#include "inference/grpc_service.grpc.pb.h"
#include "linserve/v1/embedding.grpc.pb.h"

namespace linserve {
namespace {

using Deadline = std::chrono::system_clock::time_point;

class EndedCall : public PendingCall {
  void Cancel() override {}
};

// The results of one Embed call over all of its attempts.
class Collector {
 public:
  Collector(size_t sequences, const std::function<void(SequenceResult)>& on_result)
      : on_result_(on_result), pending_(sequences) {
    for (size_t i = 0; i < sequences; ++i) pending_[i] = i;
  }

  const std::vector<size_t>& pending() const { return pending_; }

  // Of the attempt that sent pending(). UNAVAILABLE waits for a better answer.
  void Take(SequenceResult result) {
    result.index = pending_[result.index];
    if (absl::IsUnavailable(result.status)) {
      unavailable_.push_back(std::move(result));
    } else {
      on_result_(std::move(result));
    }
  }

  // Makes pending() what the ended attempt has left over.
  absl::Status EndAttempt(const absl::Status& status, const ResultAssembler& assembler) {
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

  void ForgetUnavailable() { unavailable_.clear(); }

  // After the last attempt: no better answer comes. OK if every sequence has a result.
  absl::Status End(const absl::Status& status) {
    const bool answered = unanswered_ == 0 && !unavailable_.empty();
    for (SequenceResult& result : unavailable_) on_result_(std::move(result));
    return answered ? absl::OkStatus() : status;
  }

 private:
  const std::function<void(SequenceResult)>& on_result_;
  std::vector<size_t> pending_;
  std::vector<SequenceResult> unavailable_;
  size_t unanswered_ = 0;
};

}  // namespace

struct EmbeddingClient::Impl {
  explicit Impl(ClientOptions client_options)
      : options(std::move(client_options)),
        channel(MakeChannel(options)),
        stub(v1::EmbeddingService::NewStub(channel)),
        infer_stub(inference::GRPCInferenceService::NewStub(channel)) {}

  // Runs `attempt` until it is no longer UNAVAILABLE, the attempts are used up or the next pause
  // would reach past the deadline.
  absl::Status WithRetries(const std::function<absl::Status(Deadline)>& attempt) {
    const Deadline deadline = std::chrono::system_clock::now() + options.timeout;
    Backoff backoff(options.backoff, std::random_device{}());
    absl::Status status = attempt(deadline);
    for (int tries = 1; absl::IsUnavailable(status) && tries < options.max_attempts; ++tries) {
      const auto pause = backoff.Next();
      if (std::chrono::system_clock::now() + pause >= deadline) break;
      std::this_thread::sleep_for(pause);
      status = attempt(deadline);
    }
    return Explain(std::move(status));
  }

  // A server that cannot be reached gets a message that helps.
  absl::Status Explain(absl::Status status) {
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
    const grpc_connectivity_state state = channel->GetState(false);
    if (state != GRPC_CHANNEL_TRANSIENT_FAILURE && state != GRPC_CHANNEL_CONNECTING) return status;
    return absl::UnavailableError(
        "cannot reach a server at " + options.target + " (" + std::string(status.message()) +
        "); start one with `linserve serve --model-repository DIR`, or choose another with "
        "`--target HOST:PORT`");
  }

  absl::Status EmbedOnce(const EmbedCall& call, Deadline deadline, Collector& collector) {
    const v1::EmbedRequest request = EncodeRequest(call, collector.pending());
    grpc::ClientContext context;
    context.set_deadline(deadline);
    const auto reader = stub->Embed(&context, request);
    ResultAssembler assembler(collector.pending().size());
    v1::EmbedResponse response;
    absl::Status broken;
    while (broken.ok() && reader->Read(&response)) {
      auto chunk = DecodeChunk(std::move(response));
      if (!chunk.ok()) {
        broken = chunk.status();
        break;
      }
      auto result = assembler.Add(*std::move(chunk));
      broken = result.status();
      if (broken.ok() && *result) collector.Take(**std::move(result));
    }
    if (!broken.ok()) context.TryCancel();
    const absl::Status status = ToAbsl(reader->Finish());
    return collector.EndAttempt(broken.ok() ? status : broken, assembler);
  }

  absl::Status InferOnce(const EmbedCall& call, Deadline deadline,
                         std::vector<SequenceResult>& results) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    inference::ModelInferResponse response;
    const auto request = EncodeInferRequest(call);
    if (!request.ok()) return request.status();
    absl::Status status = ToAbsl(infer_stub->ModelInfer(&context, *request, &response));
    if (!status.ok()) return status;
    auto decoded = DecodeInferResponse(call, response);
    if (!decoded.ok()) return decoded.status();
    results = *std::move(decoded);
    return absl::OkStatus();
  }

  absl::StatusOr<ModelDescription> GetMetadata(const std::string& model, int64_t version) {
    inference::ModelMetadataRequest request;
    request.set_name(model);
    if (version != 0) request.set_version(std::to_string(version));
    inference::ModelMetadataResponse response;
    const absl::Status status = WithRetries([&](Deadline deadline) {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      return ToAbsl(infer_stub->ModelMetadata(&context, request, &response));
    });
    if (!status.ok()) return status;
    ModelDescription description = DecodeMetadata(response, options.vocabulary);
    description.version = version;
    return description;
  }

  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::EmbeddingService::Stub> stub;
  std::unique_ptr<inference::GRPCInferenceService::Stub> infer_stub;
  AsyncCalls async_calls;  // destroyed first
};

PreparedCall::PreparedCall(const EmbedCall& call, Protocol protocol)
    : request_(std::make_shared<const Request>(
          protocol == Protocol::kOip
              ? Request{{}, EncodeInferRequest(call), call}
              : Request{EncodeRequest(call), inference::ModelInferRequest(), {}})) {}

EmbeddingClient::EmbeddingClient(ClientOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

EmbeddingClient::~EmbeddingClient() = default;

absl::Status EmbeddingClient::Embed(const EmbedCall& call,
                                    const std::function<void(SequenceResult)>& on_result) {
  if (impl_->options.protocol == Protocol::kOip) {
    std::vector<SequenceResult> results;
    absl::Status status = impl_->WithRetries(
        [&](Deadline deadline) { return impl_->InferOnce(call, deadline, results); });
    for (SequenceResult& result : results) on_result(std::move(result));
    return status;
  }
  Collector collector(call.sequences.size(), on_result);
  const absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    collector.ForgetUnavailable();
    return impl_->EmbedOnce(call, deadline, collector);
  });
  return collector.End(status);
}

absl::StatusOr<std::vector<SequenceResult>> EmbeddingClient::Embed(const EmbedCall& call) {
  std::vector<SequenceResult> results(call.sequences.size());
  const absl::Status status = Embed(call, [&results](SequenceResult result) {
    const size_t index = result.index;
    results[index] = std::move(result);
  });
  if (!status.ok()) return status;
  return results;
}

std::shared_ptr<PendingCall> EmbeddingClient::EmbedAsync(const PreparedCall& call,
                                                         EmbedCallback done) {
  const Deadline deadline = std::chrono::system_clock::now() + impl_->options.timeout;
  if (impl_->options.protocol == Protocol::kOip) {
    if (const absl::Status& status = call.request().infer.status(); !status.ok()) {
      done(status, {});
      return std::make_shared<EndedCall>();
    }
    return impl_->async_calls.Start(*impl_->infer_stub, call, deadline, std::move(done));
  }
  return impl_->async_calls.Start(*impl_->stub, call, deadline, std::move(done));
}

std::shared_ptr<PendingCall> EmbeddingClient::EmbedAsync(const EmbedCall& call,
                                                         EmbedCallback done) {
  return EmbedAsync(PreparedCall(call, impl_->options.protocol), std::move(done));
}

std::unique_ptr<EmbedStream> EmbeddingClient::OpenStream() { return OpenGrpcStream(*impl_->stub); }

absl::StatusOr<std::vector<ModelDescription>> EmbeddingClient::ListModels() {
  v1::ListModelsResponse response;
  const absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    return ToAbsl(impl_->stub->ListModels(&context, {}, &response));
  });
  if (!status.ok()) return status;
  std::vector<ModelDescription> models;
  for (const v1::Model& model : response.models()) models.push_back(DecodeModel(model));
  return models;
}

absl::StatusOr<ModelDescription> EmbeddingClient::GetModel(const std::string& model,
                                                           int64_t version) {
  v1::GetModelRequest request;
  request.set_model(model);
  request.set_version(version);
  v1::Model response;
  const absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    return ToAbsl(impl_->stub->GetModel(&context, request, &response));
  });
  // Another server of the Open Inference Protocol knows its models by that alone.
  if (absl::IsUnimplemented(status) && impl_->options.protocol == Protocol::kOip) {
    return impl_->GetMetadata(model, version);
  }
  if (!status.ok()) return status;
  return DecodeModel(response);
}

absl::StatusOr<HealthState> EmbeddingClient::Health(const std::string& service) {
  HealthState state = HealthState::kUnknown;
  const absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    return ToAbsl(CheckHealth(impl_->channel, deadline, service, &state));
  });
  // The health protocol's way to say that it does not know the service.
  if (absl::IsNotFound(status)) return HealthState::kServiceUnknown;
  if (!status.ok()) return status;
  return state;
}

const ClientOptions& EmbeddingClient::options() const { return impl_->options; }

}  // namespace linserve
