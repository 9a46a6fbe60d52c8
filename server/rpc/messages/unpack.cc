#include "rpc/messages/unpack.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/gzip.h"
#include "core/status/retry_delay.h"

namespace linserve {
namespace {

// Is the first byte of gzip's. No message of protobuf begins with it, since it would be a field of
// a type that there is not.
constexpr char kGzip = 0x1f;

}  // namespace

absl::Status Unpack(grpc::ByteBuffer& bytes, int64_t most,
                    absl::FunctionRef<absl::Status(int64_t bytes)> grow) {
  std::optional<grpc::ProtoBufferReader> reader(std::in_place, &bytes);
  const void* data = nullptr;
  int size = 0;
  const auto next = [&] { return reader->status().ok() && reader->Next(&data, &size); };
  const auto piece = [&] {
    return std::string_view(static_cast<const char*>(data), static_cast<size_t>(size));
  };
  bool more = next();
  while (more && piece().empty()) more = next();
  if (!more || piece().front() != kGzip) return absl::OkStatus();
  absl::Status status;
  std::vector<grpc::Slice> unpacked;
  int64_t total = 0;
  const auto keep = [&](std::string_view some) {
    total += std::ssize(some);
    status = total <= most ? grow(std::ssize(some))
                           : NeverFits(absl::ResourceExhaustedError(
                                 "the message, which was packed, has more than the " +
                                 std::to_string(most) + " bytes that one may have"));
    if (status.ok()) unpacked.emplace_back(some.data(), some.size());
    return status.ok();
  };
  Gunzip gunzip;
  bool well = true;
  for (; more && well; more = next()) well = gunzip.Take(piece(), keep);
  if (!status.ok()) return status;
  if (!well || !gunzip.ended()) {
    return absl::InvalidArgumentError(
        "the message cannot be read: it begins as gzip does, and is "
        "not of it");
  }
  reader.reset();
  bytes = grpc::ByteBuffer(unpacked.data(), unpacked.size());
  return absl::OkStatus();
}

absl::Status UnpackRequest(const ServiceContext& service, const Caller& caller,
                           grpc::ByteBuffer& bytes, Inflight::Reservation& held) {
  int64_t total = 0;
  const auto grow = [&](int64_t more) -> absl::Status {
    if (total == 0) held = service.inflight->ReserveBytes(caller.name());
    total += more;
    return held.Grow(more);
  };
  absl::Status status = Unpack(bytes, service.limits.max_message_bytes, grow);
  if (!status.ok()) caller.Owe(total);
  return status;
}

}  // namespace linserve
