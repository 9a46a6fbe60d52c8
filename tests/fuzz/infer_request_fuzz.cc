#include <cstdint>
#include <utility>

#include "fuzz/fuzz_infer.h"
#include "rpc/wire.h"

// Whatever the bytes are, the request comes to its end, once.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const grpc::Slice slice(data, size);
  grpc::ByteBuffer bytes(&slice, 1);
  inference::ModelInferRequest request;
  if (linserve::Parse(bytes, request).ok()) (void)linserve::FuzzInfer(std::move(request));
  return 0;
}
