#include "rest/calls/request_ids.h"

#include <algorithm>
#include <string>

#include "rest/calls/rest_call.h"
#include "serving/request_context.h"

namespace linserve {

void NameRequest(HttpRequest& request) {
  std::string& id = request.headers[kRequestId];
  request.named = !id.empty() && id.size() <= kMaxIdBytes;
  if (!request.named) id = RequestIdOr("");
}

void NameReply(const HttpRequest& request, HttpReply& reply) {
  const bool said = std::any_of(reply.headers.begin(), reply.headers.end(),
                                [](const auto& header) { return header.first == kRequestId; });
  const std::string id = request.Header(kRequestId);
  if (!said && !id.empty()) reply.headers.emplace_back(kRequestId, id);
}

}  // namespace linserve
