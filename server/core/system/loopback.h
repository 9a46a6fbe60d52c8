#pragma once

#include <string>

namespace linserve {

// Returns whether what is sent to this host stays on the machine: localhost, ::1, or an address
// 127.x.y.z.
bool IsLoopback(const std::string& host);

// Returns whether what is sent to this gRPC target stays on the machine. A target is HOST:PORT,
// dns:///HOST:PORT, ipv4:..., ipv6:... or unix:PATH. Who calls 0.0.0.0 or [::], on which a server
// listens, gets this machine.
bool IsLoopbackTarget(const std::string& target);

}  // namespace linserve
