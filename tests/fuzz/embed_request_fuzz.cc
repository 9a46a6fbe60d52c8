#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "fuzz/fuzz_bounds.h"
#include "fuzz/fuzz_embed.h"
#include "rpc/calls/received.h"
#include "rpc/embedding/upload.h"

// Checks that the request comes to its end, whatever the bytes are, and that what is known of it
// before it is decoded is right.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  grpc::ByteBuffer bytes = linserve::InSlices(data, size);
  linserve::Received<linserve::v1::EmbedRequest> request;
  const linserve::RequestHead head = linserve::HeadOf(bytes);
  if (!linserve::FuzzBounds<linserve::v1::EmbedRequest>(bytes)) return 0;
  if (!linserve::Parse(bytes, request.message).ok()) return 0;
  const std::string& id = request.message.request_id();
  if (head.id != id) std::abort();
  const auto& sequences = request.message.sequences();
  const bool one = sequences.size() == 1;
  const bool later = one && sequences[0].first_row() > 0;
  if (head.later_chunk != later) std::abort();
  if (head.chunk != (later || (one && sequences[0].total_rows() > 0))) std::abort();
  linserve::FuzzEmbed(std::move(request)).wait();
  return 0;
}
