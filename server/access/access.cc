#include "access/access.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/files/file.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

absl::StatusOr<TokenTable> ReadTokens(const std::string& path, const TokenTable* before) {
  constexpr size_t kLongest = 4 << 20;
  const auto text = ReadFile(path, kLongest);
  if (!text.ok()) {
    return absl::Status(text.status().code(), "cannot read the tokens file " + path + ": " +
                                                  std::string(text.status().message()));
  }
  auto tokens = TokenTable::Parse(*text, before);
  if (tokens.ok()) return tokens;
  return absl::InvalidArgumentError("tokens file " + path + ": " +
                                    std::string(tokens.status().message()));
}

absl::Status Unauthenticated(const char* what) {
  return absl::UnauthenticatedError(std::string(what) +
                                    "; this server expects \"authorization: Bearer TOKEN\" with a "
                                    "token of its tokens file");
}

// Returns an address without its scheme, its port and brackets.
std::string AddressOf(std::string_view peer) {
  if (peer.starts_with("unix:")) return "unix";
  for (const std::string_view scheme : {"ipv4:", "ipv6:"}) {
    if (!peer.starts_with(scheme)) continue;
    peer.remove_prefix(scheme.size());
    const size_t port = peer.rfind(':');
    if (port != std::string_view::npos) peer = peer.substr(0, port);
  }
  // gRPC escapes the brackets of an IPv6 address.
  for (const auto& [open, close] : {std::pair("%5B", "%5D"), std::pair("[", "]")}) {
    if (!peer.starts_with(open) || !peer.ends_with(close)) continue;
    peer.remove_prefix(std::strlen(open));
    peer.remove_suffix(std::strlen(close));
  }
  return std::string(peer);
}

std::string Text(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

}  // namespace

Access::Access(std::string path, Metrics& metrics, Clock& clock)
    : path_(std::move(path)), metrics_(metrics), watch_({path_}, clock) {}

void AccessOptions::Bind(OptionTable& table) {
  table.Text("tls_certificate", tls.certificate,
             "PEM file of the server's certificate and those that it is signed by: gRPC and HTTP "
             "then speak TLS only; read again when it changes");
  table.Text("tls_private_key", tls.private_key, "PEM file of its private key");
  table.Text("tls_client_ca", tls.client_ca,
             "PEM file of the authority that callers' certificates must be signed by (mutual TLS); "
             "over HTTP, health needs none; empty: callers need none");
  table.Text("tokens_file", tokens_file,
             "JSON file of the tokens with which callers may call, their rights and rates, read "
             "again when it changes (deploy/README.md tells its form); empty: anybody may");
}

absl::StatusOr<std::unique_ptr<Access>> Access::Open(const std::string& path, Metrics& metrics,
                                                     Clock& clock) {
  std::unique_ptr<Access> access(new Access(path, metrics, clock));
  if (path.empty()) return access;
  MutexLock lock(access->mutex_);
  auto tokens = ReadTokens(path, nullptr);
  if (!tokens.ok()) return tokens.status();
  access->tokens_ = std::make_shared<const TokenTable>(*std::move(tokens));
  return access;
}

void Access::ReloadIfChanged() {
  if (!watch_.Changed()) return;
  auto tokens = ReadTokens(path_, tokens_.get());
  if (watch_.IsNews(tokens.status())) {
    metrics_.ReloadFailed(Reload::kTokens);
    Log(LogLevel::kError, "the tokens of before go on",
        {{"because", std::string(tokens.status().message())}});
  }
  // The tokens that were good stay in force: a slip of the editor must not lock everybody out.
  if (!tokens.ok()) return;
  tokens_ = std::make_shared<const TokenTable>(*std::move(tokens));
  Log(LogLevel::kInfo, "tokens read", {{"file", path_}, {"tokens", int64_t(tokens_->size())}});
}

void Access::Look() {
  MutexLock lock(mutex_);
  if (!open()) ReloadIfChanged();
}

absl::StatusOr<std::shared_ptr<const Caller>> Access::Authenticate(std::string_view authorization,
                                                                   std::string_view peer) {
  if (open()) return std::make_shared<const Caller>(MachineOf(peer));
  std::shared_ptr<const TokenTable> tokens;
  {
    MutexLock lock(mutex_);
    ReloadIfChanged();
    tokens = tokens_;
  }
  constexpr std::string_view kScheme = "Bearer ";
  const bool bearer = authorization.size() > kScheme.size() &&
                      strncasecmp(authorization.data(), kScheme.data(), kScheme.size()) == 0;
  auto caller = bearer ? tokens->Find(authorization.substr(kScheme.size())) : nullptr;
  if (caller != nullptr) return caller;
  metrics_.Refused(Refusal::kUnauthenticated);
  return Unauthenticated(bearer ? "the token is not known" : "there is no token");
}

std::string MachineOf(std::string_view peer) {
  constexpr size_t kNetworkBytes = 8;
  std::string address = AddressOf(peer);
  in6_addr bytes{};
  if (::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &bytes) != 1) {
    return address;
  }
  if (IN6_IS_ADDR_LOOPBACK(&bytes)) return address;
  if (IN6_IS_ADDR_V4MAPPED(&bytes)) return Text(AF_INET, &bytes.s6_addr[12]);
  std::fill(std::begin(bytes.s6_addr) + kNetworkBytes, std::end(bytes.s6_addr), uint8_t{0});
  return Text(AF_INET6, &bytes) + "/64";
}

}  // namespace linserve
