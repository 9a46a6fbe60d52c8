#include <cstdint>
#include <utility>

#include "fuzz/fuzz_infer.h"
#include "rpc/received.h"

// Whatever the bytes are, the request comes to its end, once.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  grpc::ByteBuffer bytes = linserve::InSlices(data, size);
  linserve::Received<inference::ModelInferRequest> request;
  if (linserve::Parse(bytes, request, /*least=*/8).ok())
    (void)linserve::FuzzInfer(std::move(request));
  return 0;
}
