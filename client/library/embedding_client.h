#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/backoff.h"
#include "client/library/calls.h"
#include "client/library/embed_stream.h"

namespace linserve {

// Holds certificates and keys as PEM.
struct TlsOptions {
  bool enabled = false;
  std::string authority{};    // has signed the server's certificate; empty: the machine's
  std::string certificate{};  // the caller's own, for mutual TLS
  std::string private_key{};
  std::string server_name{};  // name in the server's certificate, if it is not the target's
};

struct ClientOptions {
  // The server's address may be anything that gRPC resolves: "host:port", "dns:///name:port",
  // "unix:/path", and several addresses at once, "ipv4:10.0.0.1:8500,10.0.0.2:8500".
  std::string target = "127.0.0.1:8500";
  // If set, calls go in turn to all of the target's addresses whose health says SERVING, and gRPC
  // tries them again, as deploy/service_config.json says. Otherwise all go to the first address
  // that can be reached.
  bool balance = false;
  Protocol protocol = Protocol::kLinserve;
  // Number of token ids of a model of which no more is known than the Open Inference Protocol
  // tells.
  int64_t vocabulary = 256;
  // Bounds one call, over all of its attempts; for a sequence in chunks, the time without a sign of
  // life.
  std::chrono::milliseconds timeout{30000};
  // Bounds a call that EmbedAsync() sends, if it has another bound.
  std::optional<std::chrono::milliseconds> async_timeout{};
  // Attempts of one call; 1: it is never tried again.
  int max_attempts = 4;
  BackoffOptions backoff;
  // Bounds one message, both ways; -1: the server's limit alone counts.
  int max_message_bytes = -1;
  TlsOptions tls{};
  std::string token{};  // sent as "authorization: Bearer TOKEN"; empty: none
};

// Represents a call that EmbedAsync() has started. Dropping it does not stop the call.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  // Ends the call: its callback gets CANCELLED, unless the call has ended. Thread-safe.
  virtual void Cancel() = 0;
};

// Holds a call in the form in which it is sent, to be sent many times at no further cost. It is for
// clients of its protocol.
class PreparedCall {
 public:
  struct Request;
  explicit PreparedCall(const EmbedCall& call, Protocol protocol = Protocol::kLinserve);

  // Returns why it cannot be sent: its protocol has no form for such a call.
  absl::Status fault() const;

  const Request& request() const { return *request_; }

 private:
  std::shared_ptr<const Request> request_;
};

// Keeps gRPC's own lines off the terminal, where an error says the same, unless GRPC_VERBOSITY asks
// for them. A program calls it at its start.
void QuietGrpc();

// Calls one server, on one connection of its own. Thread-safe. Calls are tried again when the
// server is UNAVAILABLE, never past their deadline. By the Open Inference Protocol a call's
// sequences are one batch: they have a result each, or the call fails.
class EmbeddingClient {
 public:
  explicit EmbeddingClient(ClientOptions options = {});
  // Cancels the asynchronous calls in flight and waits for their callbacks. It must not run in a
  // callback.
  ~EmbeddingClient();

  // Hands over each result as soon as it is complete, in any order, on the calling thread. A fault
  // of one sequence is a result with a status. If the call as a whole fails, the sequences that
  // have not been handed over by then never are. An attempt sends again only the sequences without
  // a result.
  absl::Status Embed(const EmbedCall& call, const std::function<void(SequenceResult)>& on_result);

  // Returns all results, in the order of the sequences; the call's status if it failed as a whole.
  absl::StatusOr<std::vector<SequenceResult>> Embed(const EmbedCall& call);

  // Starts a call; never blocks and never tries again. `done` is called exactly once, on a thread
  // of gRPC, which it must not block.
  std::shared_ptr<PendingCall> EmbedAsync(const PreparedCall& call, EmbedCallback done);
  std::shared_ptr<PendingCall> EmbedAsync(const EmbedCall& call, EmbedCallback done);

  // Opens a new stream on this client's connection, without a deadline.
  std::unique_ptr<EmbedStream> OpenStream();

  // Hands over the tokens that follow the prompt as they come, on the calling thread. The call is
  // tried again only while no token has come.
  absl::StatusOr<GenerationEnd> Generate(const GenerateCall& call,
                                         const std::function<void(GeneratedTokens)>& on_tokens);

  absl::StatusOr<std::vector<ModelDescription>> ListModels();
  absl::StatusOr<ModelDescription> GetModel(const std::string& model, int64_t version = 0);

  // Asks for the health of the server as a whole, or of one of its services.
  absl::StatusOr<HealthState> Health(const std::string& service = "");

  const ClientOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace linserve
