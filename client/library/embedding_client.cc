#include "client/library/embedding_client.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "client/library/channel.h"
#include "client/library/embed_attempt.h"
#include "client/library/embed_call_reactor.h"
#include "client/library/grpc_embed_stream.h"
#include "client/library/infer_wire.h"
#include "client/library/result_assembler.h"
#include "client/library/wire.h"
#include "core/status/retry_delay.h"
#include "inference/grpc_service.grpc.pb.h"
#include "linserve/v1/embedding.grpc.pb.h"

namespace linserve {
namespace {

using Deadline = std::chrono::system_clock::time_point;

// The protocol carries token ids in 32 bits.
absl::Status CheckWireIds(const std::vector<int64_t>& ids) {
  for (const int64_t id : ids) {
    if (id >= 0 && id <= std::numeric_limits<uint32_t>::max()) continue;
    return absl::InvalidArgumentError("there is no token " + std::to_string(id) +
                                      ", expected ids from 0 to 4294967295");
  }
  return absl::OkStatus();
}

class EndedCall : public PendingCall {
  void Cancel() override {}
};

}  // namespace

struct EmbeddingClient::Impl {
  explicit Impl(ClientOptions client_options)
      : options(std::move(client_options)),
        channel(MakeChannel(options)),
        stub(v1::EmbeddingService::NewStub(channel)),
        infer_stub(inference::GRPCInferenceService::NewStub(channel)) {}

  // Runs `attempt` until it ends otherwise than to be tried again, or the next pause would reach
  // past the deadline. A server that has never answered is tried a few times only.
  absl::Status WithRetries(const std::function<absl::Status(Deadline)>& attempt) {
    const Deadline deadline = std::chrono::system_clock::now() + options.timeout;
    Backoff backoff(options.backoff, std::random_device{}());
    absl::Status status = attempt(deadline);
    for (int tries = 1; options.max_attempts > 1; ++tries) {
      const auto told = RetryDelayOf(status);  // by a server that has no room now
      const bool again =
          absl::IsUnavailable(status) ? tries < options.max_attempts || answered : told.has_value();
      const auto pause = std::max<std::chrono::nanoseconds>(
          backoff.Next(), told.value_or(std::chrono::milliseconds(0)));
      if (!again || std::chrono::system_clock::now() + pause >= deadline) break;
      std::this_thread::sleep_for(pause);
      status = attempt(deadline);
    }
    if (status.ok()) answered = true;
    return Explain(std::move(status));
  }

  // Gives a message that helps where a server cannot be reached.
  absl::Status Explain(absl::Status status) {
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
    const grpc_connectivity_state state = channel->GetState(false);
    if (state != GRPC_CHANNEL_TRANSIENT_FAILURE && state != GRPC_CHANNEL_CONNECTING) return status;
    if (absl::StrContains(status.message(), "http1.x")) {
      return absl::UnavailableError(
          options.target + " is an address of HTTP; that of gRPC is another one, " +
          ClientOptions().target + " unless the server was told otherwise");
    }
    if (absl::StrContains(status.message(), "is not in peer certificate")) {
      return absl::UnavailableError("the certificate of " + options.target +
                                    " is for another name (" + std::string(status.message()) +
                                    "); give one that it is for by `--tls-server-name NAME`");
    }
    return absl::UnavailableError(
        "cannot reach a server at " + options.target + " (" + std::string(status.message()) +
        "); start one with `linserve serve --model-repository DIR`, choose another with "
        "`--target HOST:PORT`" +
        (options.tls.enabled ? ", see whether `--tls-ca` has the authority of its certificate, or "
                               "leave out `--tls` if it speaks plain text"
                             : ", or add `--tls-ca FILE` if it speaks TLS"));
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
    absl::Status status = WithRetries([&](Deadline deadline) {
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
  std::atomic<bool> answered = false;  // a call was, so that a server that is gone will come back
  Activity activity;
  AsyncCalls async_calls;  // destroyed first
};

void QuietGrpc() {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;  // NOLINT(concurrency-mt-unsafe): at start
  gpr_set_log_function([](gpr_log_func_args* /*line*/) {});
}

PreparedCall::PreparedCall(const EmbedCall& call, Protocol protocol)
    : request_(std::make_shared<const Request>(
          protocol == Protocol::kOip
              ? Request{{}, EncodeInferRequest(call), call}
              : Request{EncodeRequest(call), inference::ModelInferRequest(), {}})) {}

absl::Status PreparedCall::fault() const { return request_->infer.status(); }

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
  ResultCollector collector(call.sequences.size(), on_result);
  const absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    collector.ForgetUnavailable();
    return AttemptEmbed(*impl_->stub, call, deadline, impl_->options.timeout, impl_->activity,
                        collector);
  });
  return collector.End(status);
}

absl::StatusOr<std::vector<SequenceResult>> EmbeddingClient::Embed(const EmbedCall& call) {
  std::vector<SequenceResult> results(call.sequences.size());
  absl::Status status = Embed(call, [&results](SequenceResult result) {
    const size_t index = result.index;
    results[index] = std::move(result);
  });
  if (!status.ok()) return status;
  return results;
}

std::shared_ptr<PendingCall> EmbeddingClient::EmbedAsync(const PreparedCall& call,
                                                         EmbedCallback done) {
  const ClientOptions& options = impl_->options;
  const Deadline deadline =
      std::chrono::system_clock::now() + options.async_timeout.value_or(options.timeout);
  if (absl::Status fault = call.fault(); !fault.ok()) {
    done(std::move(fault), {});
    return std::make_shared<EndedCall>();
  }
  if (options.protocol == Protocol::kOip) {
    return impl_->async_calls.Start(*impl_->infer_stub, call, deadline, std::move(done));
  }
  return impl_->async_calls.Start(*impl_->stub, call, deadline, std::move(done));
}

std::shared_ptr<PendingCall> EmbeddingClient::EmbedAsync(const EmbedCall& call,
                                                         EmbedCallback done) {
  return EmbedAsync(PreparedCall(call, impl_->options.protocol), std::move(done));
}

std::unique_ptr<EmbedStream> EmbeddingClient::OpenStream() { return OpenGrpcStream(*impl_->stub); }

absl::StatusOr<GenerationEnd> EmbeddingClient::Generate(
    const GenerateCall& call, const std::function<void(GeneratedTokens)>& on_tokens) {
  for (const auto* ids : {&call.token_ids, &call.stop_tokens}) {
    if (absl::Status status = CheckWireIds(*ids); !status.ok()) return status;
  }
  const v1::GenerateRequest request = EncodeGenerateRequest(call);
  GenerationEnd end;
  bool begun = false;
  absl::Status broken_off;
  absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    const auto reader = impl_->stub->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      begun = true;
      if (response.token_ids_size() > 0 || !response.text().empty()) {
        on_tokens({{response.token_ids().begin(), response.token_ids().end()}, response.text()});
      }
      if (!response.last()) continue;
      end = {response.finish_reason(), static_cast<int64_t>(response.prompt_tokens()),
             static_cast<int64_t>(response.generated_tokens())};
    }
    absl::Status ended = ToAbsl(reader->Finish());
    if (!begun || ended.ok()) return ended;
    broken_off = std::move(ended);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (!broken_off.ok()) return broken_off;
  return end;
}

absl::StatusOr<std::vector<ModelDescription>> EmbeddingClient::ListModels() {
  v1::ListModelsResponse response;
  absl::Status status = impl_->WithRetries([&](Deadline deadline) {
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
  absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    return ToAbsl(impl_->stub->GetModel(&context, request, &response));
  });
  // Another server of the Open Inference Protocol knows its models by that protocol alone.
  if (absl::IsUnimplemented(status) && impl_->options.protocol == Protocol::kOip) {
    return impl_->GetMetadata(model, version);
  }
  if (!status.ok()) return status;
  return DecodeModel(response);
}

absl::StatusOr<HealthState> EmbeddingClient::Health(const std::string& service) {
  HealthState state = HealthState::kUnknown;
  absl::Status status = impl_->WithRetries([&](Deadline deadline) {
    return ToAbsl(CheckHealth(impl_->channel, deadline, service, &state));
  });
  // The health protocol says NOT_FOUND where it does not know the service.
  if (absl::IsNotFound(status)) return HealthState::kServiceUnknown;
  if (!status.ok()) return status;
  return state;
}

const ClientOptions& EmbeddingClient::options() const { return impl_->options; }

}  // namespace linserve
