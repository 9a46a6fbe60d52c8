#include "http/cors.h"

#include <algorithm>

#include "core/system/loopback.h"
#include "http/framing/grammar.h"

namespace linserve {
namespace {

bool AreAny(const std::vector<std::string>& origins) {
  return origins == std::vector<std::string>{"*"};
}

bool Has(const std::vector<std::string>& origins, const std::string& origin) {
  return std::find(origins.begin(), origins.end(), origin) != origins.end();
}

// Says whether the field Host is of an address of this machine, or localhost.
bool IsOfThisMachine(const std::string& field) {
  const size_t port = field.find(':', field.find(']') == std::string::npos ? 0 : field.find(']'));
  std::string host = LowerCase(field.substr(0, port));
  if (host.ends_with('.')) host.pop_back();
  return IsLoopback(host);
}

}  // namespace

bool MayCall(const std::vector<std::string>& origins, bool on_loopback,
             const HttpRequest& request) {
  const std::string origin = request.Header("origin");
  if (origin.empty() || AreAny(origins) || Has(origins, origin)) return true;
  const std::string host = request.Header("host");
  if (on_loopback && !IsOfThisMachine(host)) return false;
  if (request.Header("sec-fetch-site") == "same-origin") return true;  // a proxy's Host differs
  return origin == "http://" + host || origin == "https://" + host;
}

void AllowOrigin(const std::vector<std::string>& origins, const HttpRequest& request,
                 HttpReply& reply) {
  if (origins.empty()) return;
  const bool any = AreAny(origins);
  const std::string origin = any ? "*" : request.Header("origin");
  auto& headers = reply.headers;
  if (!any) headers.emplace_back("Vary", "Origin");
  if (!any && !Has(origins, origin)) return;
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
