#include "rpc/received.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

namespace linserve {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr size_t kDeepest = 3;

// A field of a length, as places in the message's bytes.
struct Field {
  uint32_t tag = 0;
  size_t begin = 0;    // of the tag
  size_t payload = 0;  // after the length
  size_t size = 0;     // of the payload

  size_t end() const { return payload + size; }
};

size_t HeaderSize(uint32_t tag, size_t size) {
  return CodedOutputStream::VarintSize32(tag) +
         CodedOutputStream::VarintSize32(static_cast<uint32_t>(size));
}

// A field that is not to be copied, and those that it is in, from the outermost on.
struct LargeField {
  int place = 0;
  std::array<Field, kDeepest> path;
};

// Looks for large fields at a path of field numbers, the first of which is repeated. It finds none
// in what it has any doubt about, which protobuf then decides.
class LargeFieldScan {
 public:
  LargeFieldScan(std::span<const int> path, size_t least, CodedInputStream& input)
      : path_(path), least_(least), input_(input) {}

  std::vector<LargeField> Find(size_t bytes) {
    const auto limit = input_.PushLimit(static_cast<int>(bytes));
    if (!Scan(0)) found_.clear();
    input_.PopLimit(limit);
    return std::move(found_);
  }

 private:
  size_t At() const { return static_cast<size_t>(input_.CurrentPosition()); }

  // False: it is no message, or one that protobuf would merge of parts.
  bool Scan(size_t depth) {
    while (true) {
      const size_t begin = At();
      const uint32_t tag = input_.ReadTag();
      if (tag == 0) return input_.BytesUntilLimit() == 0 && input_.ConsumedEntireMessage();
      const bool wanted =
          tag == WireFormatLite::MakeTag(path_[depth], WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
      if (!(wanted ? Enter(depth, begin, tag) : WireFormatLite::SkipField(&input_, tag))) {
        return false;
      }
    }
  }

  bool Enter(size_t depth, size_t begin, uint32_t tag) {
    if (depth == 0) ++field_.place;
    if (depth > 0 && !found_.empty() && found_.back().place == field_.place) return false;
    int size = 0;
    if (!input_.ReadVarintSizeAsInt(&size) || size > input_.BytesUntilLimit()) return false;
    if (std::cmp_less(size, least_)) return input_.Skip(size);
    const Field field{tag, begin, At(), static_cast<size_t>(size)};
    if (field.payload - begin != HeaderSize(tag, field.size)) return false;
    field_.path[depth] = field;
    if (depth + 1 == path_.size()) {
      found_.push_back(field_);
      return input_.Skip(size);
    }
    const auto limit = input_.PushLimit(size);
    const bool whole = Scan(depth + 1);
    input_.PopLimit(limit);
    return whole;
  }

  const std::span<const int> path_;
  const size_t least_;
  CodedInputStream& input_;
  LargeField field_{.place = -1, .path = {}};
  std::vector<LargeField> found_;
};

// The bytes of a message in slices, from the first to the last.
class SliceCursor {
 public:
  explicit SliceCursor(const std::vector<grpc::Slice>& slices) : slices_(slices) {}

  // Visits the bytes [begin, end), which lie after those of the last call.
  template <typename Visit>
  void ForEach(size_t begin, size_t end, const Visit& visit) {
    while (begin < end) {
      const grpc::Slice& slice = slices_[index_];
      const size_t in_slice = begin - start_;
      if (in_slice < slice.size()) {
        const size_t size = std::min(end - begin, slice.size() - in_slice);
        visit(slice, in_slice, size);
        begin += size;
        if (in_slice + size < slice.size()) return;
      }
      start_ += slice.size();
      ++index_;
    }
  }

 private:
  const std::vector<grpc::Slice>& slices_;
  size_t index_ = 0;
  size_t start_ = 0;  // of that slice
};

void AppendHeader(uint32_t tag, size_t size, std::string& bytes) {
  std::array<uint8_t, 10> header;
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(tag, header.data());
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), end);
  bytes.append(reinterpret_cast<const char*>(header.data()),
               static_cast<size_t>(end - header.data()));
}

// The message with empty fields in place of the large ones, byte for byte otherwise.
std::string Rest(const std::vector<grpc::Slice>& slices, size_t bytes, size_t depth,
                 const std::vector<LargeField>& large) {
  std::string rest;
  SliceCursor cursor(slices);
  size_t copied = 0;
  const auto copy_until = [&](size_t end) {
    cursor.ForEach(copied, end, [&](const grpc::Slice& slice, size_t offset, size_t size) {
      rest.append(reinterpret_cast<const char*>(slice.begin()) + offset, size);
    });
  };
  for (const LargeField& field : large) {
    std::array<size_t, kDeepest> sizes{};  // without it
    for (size_t i = depth - 1; i-- > 0;) {
      const Field& inner = field.path[i + 1];
      sizes[i] = field.path[i].size - (inner.end() - inner.begin) +
                 HeaderSize(inner.tag, sizes[i + 1]) + sizes[i + 1];
    }
    for (size_t i = 0; i < depth; ++i) {
      copy_until(field.path[i].begin);
      AppendHeader(field.path[i].tag, sizes[i], rest);
      copied = field.path[i].payload;
    }
    copied = field.path[depth - 1].end();
  }
  copy_until(bytes);
  return rest;
}

struct PartOfSlice {
  grpc::Slice slice;
  size_t offset = 0;
  size_t size = 0;
};

// Keeps the slices that the fields lie in, and no others.
LargeFields Take(const std::vector<grpc::Slice>& slices, size_t depth,
                 const std::vector<LargeField>& large) {
  LargeFields fields;
  SliceCursor cursor(slices);
  for (const LargeField& field : large) {
    const Field& bytes = field.path[depth - 1];
    const auto kept = std::make_shared<std::vector<PartOfSlice>>();
    cursor.ForEach(bytes.payload, bytes.end(),
                   [&](const grpc::Slice& slice, size_t offset, size_t size) {
                     kept->push_back({slice, offset, size});
                   });
    std::vector<Piece> pieces;  // once no slice moves any more: a short one holds its bytes itself
    for (const PartOfSlice& part : *kept) {
      const auto* begin = reinterpret_cast<const std::byte*>(part.slice.begin());
      pieces.push_back({begin + part.offset, part.size});
    }
    fields[field.place] = Tensor(DType::kU8, {static_cast<int64_t>(bytes.size)},
                                 std::make_shared<const Pieces>(std::move(pieces), kept));
  }
  return fields;
}

bool TakeLarge(grpc::ByteBuffer& bytes, std::span<const int> path, size_t least,
               google::protobuf::MessageLite& message, LargeFields& large) {
  const size_t size = bytes.Length();
  if (size / 8 < least || std::cmp_greater(size, INT32_MAX)) return false;  // little is saved
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return false;
  // Each keeps a buffer that gRPC read into, of up to 64 KiB.
  if (slices.size() > size / least) return false;
  grpc::ProtoBufferReader reader(&bytes);
  CodedInputStream input(&reader);
  const std::vector<LargeField> found = LargeFieldScan(path, least, input).Find(size);
  size_t left = 0;
  for (const LargeField& field : found) left += field.path[path.size() - 1].size;
  if (left < size / 2) return false;
  if (!message.ParseFromString(Rest(slices, size, path.size(), found))) return false;
  large = Take(slices, path.size(), found);
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
  constexpr std::array<int, 3> kPath = {v1::EmbedRequest::kSequencesFieldNumber,
                                        v1::Sequence::kXFieldNumber, v1::Tensor::kDataFieldNumber};
  return ParseWith(kPath, least, bytes, request);
}

absl::Status Parse(grpc::ByteBuffer& bytes, Received<inference::ModelInferRequest>& request,
                   size_t least) {
  constexpr std::array<int, 1> kPath = {inference::ModelInferRequest::kRawInputContentsFieldNumber};
  return ParseWith(kPath, least, bytes, request);
}

}  // namespace linserve
