#pragma once

#include "http/http_message.h"

namespace linserve {

// Gives a request an id, unless its caller did so by x-request-id.
void NameRequest(HttpRequest& request);

// Tells the caller the request's id, unless the reply says one.
void NameReply(const HttpRequest& request, HttpReply& reply);

}  // namespace linserve
