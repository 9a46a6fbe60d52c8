#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "http/framing/grammar.h"
#include "support/http_framing.h"

namespace linserve {
namespace {

void Require(bool truth) {
  if (!truth) std::abort();
}

bool SameFault(const FramedRequests& left, const FramedRequests& right) {
  if (!left.fault() || !right.fault()) return left.fault().has_value() == right.fault().has_value();
  return left.fault()->status == right.fault()->status &&
         std::strcmp(left.fault()->text, right.fault()->text) == 0;
}

// In whatever pieces they come, requests are the same, and end at the same bytes.
void RequireSame(const FramedRequests& left, const FramedRequests& right) {
  Require(SameFault(left, right) && left.whole().size() == right.whole().size());
  for (size_t i = 0; i < left.whole().size(); ++i) {
    const FramedRequest& one = left.whole()[i];
    const FramedRequest& other = right.whole()[i];
    Require(one.head.target == other.head.target && one.head.headers == other.head.headers);
    Require(one.body == other.body && one.end == other.end);
  }
}

}  // namespace
}  // namespace linserve

// Reads what comes on a connection. The first byte says in which pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace linserve;
  if (size == 0) return 0;
  const std::string_view received(reinterpret_cast<const char*>(data) + 1, size - 1);
  const FramedRequests whole(received, received.size());
  RequireSame(whole, FramedRequests(received, 1 + data[0]));
  for (const FramedRequest& request : whole.whole()) {
    Require(request.body.size() == request.head.length || request.head.chunked);
    Require(PathOf(request.head.target).starts_with('/'));
  }
  return 0;
}
