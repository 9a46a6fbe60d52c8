#include <cstdint>
#include <cstdlib>
#include <utility>

#include "fuzz/fuzz_infer.h"
#include "rpc/received.h"

// Whatever the bytes are, the request comes to its end, once.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  grpc::ByteBuffer bytes = linserve::InSlices(data, size);
  linserve::Received<inference::ModelInferRequest> request;
  const bool parsed = linserve::Parse(bytes, request, /*least=*/1).ok();
  if (parsed != inference::ModelInferRequest().ParseFromArray(data, static_cast<int>(size)))
    std::abort();
  if (parsed) (void)linserve::FuzzInfer(std::move(request));
  return 0;
}
