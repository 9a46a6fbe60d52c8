#pragma once

#include <cstddef>
#include <optional>

#include "http/framing/request_head.h"
#include "http/http_message.h"
#include "http/request_stream.h"

namespace linserve {

// Reads a request's body into it, unpacked, as far as the gate lets it in. A reply refuses it.
std::optional<HttpReply> ReadContent(const HttpHead& head, RequestStream& stream, size_t most,
                                     const HttpGate& gate, HttpRequest& request);

// Packs a reply that may be packed, and is large, for a caller who wants it so.
void PackContent(const HttpRequest& request, HttpReply& reply);

}  // namespace linserve
