#include <cstdint>
#include <utility>

#include "fuzz/fuzz_bounds.h"
#include "fuzz/fuzz_infer.h"
#include "rpc/calls/received.h"

// Checks that the request comes to its end, once, whatever the bytes are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  grpc::ByteBuffer bytes = linserve::InSlices(data, size);
  linserve::Received<inference::ModelInferRequest> request;
  if (!linserve::FuzzBounds<inference::ModelInferRequest>(bytes)) return 0;
  if (linserve::Parse(bytes, request.message).ok()) (void)linserve::FuzzInfer(std::move(request));
  return 0;
}
