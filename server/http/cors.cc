#include "http/cors.h"

#include <algorithm>

namespace linserve {

void AllowOrigin(const std::vector<std::string>& origins, const HttpRequest& request,
                 HttpReply& reply) {
  if (origins.empty()) return;
  const bool any = origins == std::vector<std::string>{"*"};
  const std::string origin = any ? "*" : request.Header("origin");
  auto& headers = reply.headers;
  if (!any) headers.emplace_back("Vary", "Origin");
  if (!any && std::find(origins.begin(), origins.end(), origin) == origins.end()) return;
  headers.emplace_back("Access-Control-Allow-Origin", origin);
  headers.emplace_back("Access-Control-Expose-Headers",
                       "Inference-Header-Content-Length, Retry-After, X-Request-Id");
  if (request.Header("access-control-request-method").empty()) return;
  // What comes is looked at once it does; its headers are no danger to a server without cookies.
  headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST");
  const std::string wanted = request.Header("access-control-request-headers");
  if (!wanted.empty()) headers.emplace_back("Access-Control-Allow-Headers", wanted);
  headers.emplace_back("Access-Control-Max-Age", "600");
}

}  // namespace linserve
