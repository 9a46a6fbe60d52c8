#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/request_head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace linserve;
  const std::string_view received(reinterpret_cast<const char*>(data), size);
  (void)TooLong(received);
  const size_t head_size = HeadSize(received, 0);
  if (head_size != HeadSize(received, head_size / 2)) std::abort();
  if (head_size == 0) return 0;
  const std::string_view head = received.substr(0, head_size);
  if (FaultOf(head)) return 0;
  // Good as it is, a head is good without any of its fields, too, and ends where it did.
  const std::string rest = WithoutField(head, "Range");
  if (FaultOf(rest) || HeadSize(rest, 0) != rest.size()) std::abort();
  return 0;
}
