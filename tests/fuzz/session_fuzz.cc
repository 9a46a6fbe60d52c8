#include <cstdint>
#include <future>
#include <utility>
#include <vector>

#include "fuzz/fuzz_embed.h"
#include "fuzz/fuzz_pieces.h"

// Sends pieces of the bytes as requests, with chunks of sessions, none of which waits for those
// before it. Checks that each comes to its end, once, whatever they are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::future<void>> ends;
  for (const std::string& piece : linserve::PiecesOf(data, size)) {
    linserve::Received<linserve::v1::EmbedRequest> request;
    if (!request.message.ParseFromString(piece)) continue;
    request.message.set_model("sessions");
    ends.push_back(linserve::FuzzEmbed(std::move(request)));
  }
  for (const auto& end : ends) end.wait();
  return 0;
}
