#include "rpc/received.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace linserve {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;
using Slices = std::vector<grpc::Slice>;

// The bytes [offset, offset + size) of a message.
Tensor Cut(const std::shared_ptr<const Slices>& slices, size_t offset, size_t size) {
  const auto count = static_cast<int64_t>(size);
  std::vector<Piece> pieces;
  for (const grpc::Slice& slice : *slices) {
    if (offset >= slice.size()) {
      offset -= slice.size();
      continue;
    }
    if (size == 0) break;
    const size_t taken = std::min(size, slice.size() - offset);
    pieces.push_back({reinterpret_cast<const std::byte*>(slice.begin()) + offset, taken});
    size -= taken;
    offset = 0;
  }
  return Tensor(DType::kU8, {count}, std::make_shared<const Pieces>(std::move(pieces), slices));
}

uint32_t TagOf(int number) {
  return WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Whether the message has a field of `least` bytes at the path, as far as it is one.
bool HasLarge(CodedInputStream& message, std::span<const int> path, size_t least) {
  while (const uint32_t tag = message.ReadTag()) {
    int size = 0;
    if (tag != TagOf(path[0])) {
      if (!WireFormatLite::SkipField(&message, tag)) return false;
    } else if (!message.ReadVarintSizeAsInt(&size)) {
      return false;
    } else if (std::cmp_greater_equal(size, least)) {
      if (path.size() == 1) return true;
      const auto limit = message.PushLimit(size);
      if (HasLarge(message, path.subspan(1), least)) return true;
      if (!message.Skip(message.BytesUntilLimit())) return false;
      message.PopLimit(limit);
    } else if (!message.Skip(size)) {
      return false;
    }
  }
  return false;
}

// Copies a message but for its large fields, in whose place it leaves empty ones.
class LargeFieldsTaken {
 public:
  // `path`: the numbers of the fields that lead to one, the first of which is repeated.
  LargeFieldsTaken(std::span<const int> path, size_t least, std::shared_ptr<const Slices> slices)
      : path_(path), least_(least), slices_(std::move(slices)) {}

  // False: it is no message, or one that has a large field twice.
  bool CopyRest(CodedInputStream& message, std::string& rest) {
    return CopyRest(message, path_, rest);
  }

  LargeFields Take() { return std::move(fields_); }

 private:
  bool CopyRest(CodedInputStream& message, std::span<const int> path, std::string& rest) {
    StringOutputStream appended(&rest);
    CodedOutputStream output(&appended);
    while (const uint32_t tag = message.ReadTag()) {
      if (tag != TagOf(path[0])) {
        if (!WireFormatLite::SkipField(&message, tag, &output)) return false;
        continue;
      }
      if (path.size() == path_.size()) ++place_;
      int size = 0;
      std::string field;
      if (!message.ReadVarintSizeAsInt(&size) || !CopyField(message, size, path, field)) {
        return false;
      }
      output.WriteTag(tag);
      output.WriteVarint32(static_cast<uint32_t>(field.size()));
      output.WriteString(field);
    }
    return message.ConsumedEntireMessage();
  }

  bool CopyField(CodedInputStream& message, int size, std::span<const int> path,
                 std::string& field) {
    if (std::cmp_less(size, least_)) {
      // Protobuf merges it with the large one that came before.
      return !fields_.contains(place_) && message.ReadString(&field, size);
    }
    if (path.size() == 1) {
      const auto offset = static_cast<size_t>(message.CurrentPosition());
      Tensor bytes = Cut(slices_, offset, static_cast<size_t>(size));
      return fields_.try_emplace(place_, std::move(bytes)).second && message.Skip(size);
    }
    const auto limit = message.PushLimit(size);
    const bool copied = CopyRest(message, path.subspan(1), field);
    message.PopLimit(limit);
    return copied;
  }

  const std::span<const int> path_;
  const size_t least_;
  const std::shared_ptr<const Slices> slices_;
  LargeFields fields_;
  int place_ = -1;
};

bool TakeLarge(const grpc::ByteBuffer& bytes, std::span<const int> path, size_t least,
               google::protobuf::MessageLite& message, LargeFields& large) {
  if (bytes.Length() < 16 * least) return false;
  auto slices = std::make_shared<Slices>();
  if (!bytes.Dump(slices.get()).ok()) return false;
  // Each keeps a buffer that gRPC read into, of up to 64 KiB.
  if (slices->size() * least > bytes.Length()) return false;
  const auto read = [&](const auto& visit) {
    grpc::ByteBuffer copy(slices->data(), slices->size());  // of the references
    grpc::ProtoBufferReader reader(&copy);
    CodedInputStream input(&reader);
    return visit(input);
  };
  if (!read([&](CodedInputStream& input) { return HasLarge(input, path, least); })) return false;
  LargeFieldsTaken taken(path, least, slices);
  std::string rest;
  const bool copied = read([&](CodedInputStream& input) { return taken.CopyRest(input, rest); });
  if (!copied || !message.ParseFromString(rest)) return false;
  large = taken.Take();
  return true;
}

template <typename Message>
absl::Status ParseWith(std::span<const int> path, size_t least, grpc::ByteBuffer& bytes,
                       Received<Message>& request) {
  request.bytes = static_cast<int64_t>(bytes.Length());
  if (!TakeLarge(bytes, path, least, request.message, request.large)) {
    return Parse(bytes, request.message);
  }
  bytes.Clear();
  return absl::OkStatus();
}

}  // namespace

Tensor BytesOf(const std::string& field, const LargeFields& large, int place,
               const std::shared_ptr<const void>& owner) {
  const auto left = large.find(place);
  if (left != large.end()) return left->second;
  return Tensor(DType::kU8, {std::ssize(field)}, field.data(), owner);
}

absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(&bytes);
    parsed = reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
  }
  bytes.Clear();
  if (parsed) return absl::OkStatus();
  return absl::InvalidArgumentError("the message cannot be read as " + message.GetTypeName() +
                                    " (whose strings are UTF-8)");
}

absl::Status Parse(grpc::ByteBuffer& bytes, Received<v1::EmbedRequest>& request, size_t least) {
  constexpr int kPath[] = {v1::EmbedRequest::kSequencesFieldNumber, v1::Sequence::kXFieldNumber,
                           v1::Tensor::kDataFieldNumber};
  return ParseWith(kPath, least, bytes, request);
}

absl::Status Parse(grpc::ByteBuffer& bytes, Received<inference::ModelInferRequest>& request,
                   size_t least) {
  constexpr int kPath[] = {inference::ModelInferRequest::kRawInputContentsFieldNumber};
  return ParseWith(kPath, least, bytes, request);
}

}  // namespace linserve
