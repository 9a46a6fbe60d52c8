#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/embedding_client.h"

namespace linserve {

// The messages that answer a call, as they are on the wire.
using RecordedAnswer = std::vector<std::string>;

// What the server of these options answers. Codes of EmbeddingClient::Embed().
absl::StatusOr<RecordedAnswer> RecordAnswer(const ClientOptions& options, const EmbedCall& call);

// A server that does nothing: it answers every call, whatever it asks for, with the same messages.
// What a client measures of it is itself.
class NullServer {
 public:
  // On a free port of the loopback interface. UNAVAILABLE: there is none.
  static absl::StatusOr<std::unique_ptr<NullServer>> Start(const RecordedAnswer& answer);
  ~NullServer();

  int port() const;

 private:
  struct Impl;
  explicit NullServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace linserve
