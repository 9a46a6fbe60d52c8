#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "access/tls.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace linserve {

// Makes credentials for one port, whose files are read again when they change; without files, those
// of a server in plain text. They must outlive the server. Its errors are those of CheckTlsFiles().
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(const TlsFiles& files);

}  // namespace linserve
