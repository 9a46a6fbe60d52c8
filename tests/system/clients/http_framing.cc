// Finds the requests in inputs from standard input, each of which is what comes on one connection,
// after its size in four bytes. Writes a line of JSON for each.

#include "support/http_framing.h"

#include <cstdint>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace linserve {
namespace {

std::string Hexadecimal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

nlohmann::json Found(std::string_view received) {
  const FramedRequests requests(received, received.size());
  nlohmann::json found{{"requests", nlohmann::json::array()}, {"fault", nullptr}};
  for (const FramedRequest& request : requests.whole()) {
    found["requests"].push_back({request.head.method, request.head.target,
                                 Hexadecimal(request.body), request.end, request.head.last});
  }
  if (requests.fault()) found["fault"] = {requests.fault()->status, requests.fault()->text};
  return found;
}

}  // namespace
}  // namespace linserve

int main() {
  std::ios::sync_with_stdio(false);
  const std::string all{std::istreambuf_iterator<char>(std::cin), {}};
  std::string_view left = all;
  while (left.size() >= 4) {
    uint32_t size = 0;
    for (const size_t at : {3, 2, 1, 0}) size = size << 8 | static_cast<unsigned char>(left[at]);
    left.remove_prefix(4);
    std::cout << linserve::Found(left.substr(0, size)).dump() << '\n';
    left.remove_prefix(std::min<size_t>(size, left.size()));
  }
  return 0;
}
