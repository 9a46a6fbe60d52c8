#pragma once

#include <string>

namespace linserve {

// Whether what is sent to this host stays on the machine: localhost, ::1, or an address 127.x.y.z.
bool IsLoopback(const std::string& host);

// The same of a gRPC target: HOST:PORT, dns:///HOST:PORT, ipv4:..., ipv6:..., unix:PATH.
bool IsLoopbackTarget(const std::string& target);

}  // namespace linserve
