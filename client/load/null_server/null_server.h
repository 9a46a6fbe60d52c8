#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/library/embedding_client.h"

namespace linserve {

// Holds the messages that answer a call, as they are on the wire.
using RecordedAnswer = std::vector<std::string>;

// Returns what the server of these options answers. The codes are those of
// EmbeddingClient::Embed().
absl::StatusOr<RecordedAnswer> RecordAnswer(const ClientOptions& options, const EmbedCall& call);

// Runs a server that does nothing: it answers every call, whatever it asks for, with the same
// messages. What a client measures of it is the client itself.
class NullServer {
 public:
  // Listens on a free port of the loopback interface. Returns UNAVAILABLE if there is none.
  static absl::StatusOr<std::unique_ptr<NullServer>> Start(const RecordedAnswer& answer);
  ~NullServer();

  int port() const;

 private:
  struct Impl;
  explicit NullServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace linserve
