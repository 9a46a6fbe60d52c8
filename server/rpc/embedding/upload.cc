#include "rpc/embedding/upload.h"

#include <algorithm>
#include <new>
#include <string>
#include <tuple>

#include "core/status/retry_delay.h"
#include "rpc/embedding/convert.h"
#include "rpc/messages/peek.h"

namespace linserve {
namespace {

// Sizes are cut to this, so that sums of what is asked for cannot overflow.
constexpr int64_t kMostBytes = int64_t{1} << 60;

absl::Status InPart(int64_t row, const absl::Status& status) {
  return WithPrefix(status, "in the chunk from row " + std::to_string(row) + " on: ");
}

int64_t RowsOf(const v1::Sequence& chunk) {
  if (!chunk.has_x()) return chunk.token_ids_size();
  return chunk.x().shape().empty() ? 0 : chunk.x().shape(0);
}

// Says where the rows of a chunk lie in their sequence.
struct Place {
  uint64_t total_rows = 0;
  uint64_t first_row = 0;
};

// Reads the place of the sequence that the input stands before.
Place PlaceOf(CodedInputStream& input) {
  Place place;
  const auto limit = input.ReadLengthAndPushLimit();
  Peek(input, [&](uint32_t tag) {
    if (tag == VarintTag(v1::Sequence::kTotalRowsFieldNumber)) {
      return input.ReadVarint64(&place.total_rows);
    }
    return tag == VarintTag(v1::Sequence::kFirstRowFieldNumber) &&
           input.ReadVarint64(&place.first_row);
  });
  input.PopLimit(limit);
  return place;
}

// Returns OK if some sequence of the model may be that long.
absl::Status CheckLength(const Signature& signature, char letter, uint64_t rows) {
  for (const LengthLimit& limit : signature.limits) {
    if (limit.letter != letter || !limit.unless_input.empty()) continue;
    if (rows <= static_cast<uint64_t>(limit.longest)) continue;
    return absl::InvalidArgumentError("total_rows is " + std::to_string(rows) +
                                      ", expected at most " + std::to_string(limit.longest) +
                                      ", the longest sequence that the model takes");
  }
  return absl::OkStatus();
}

}  // namespace

RequestHead HeadOf(const grpc::ByteBuffer& bytes) {
  RequestHead head;
  int sequences = 0;
  Place place;
  Peek(bytes, [&](CodedInputStream& input, uint32_t tag) {
    if (tag == LengthTag(v1::EmbedRequest::kRequestIdFieldNumber)) {
      const PeekedId id = PeekId(input);
      head.id = id.text;
      head.id_cut = id.cut;
    } else if (tag == LengthTag(v1::EmbedRequest::kSequencesFieldNumber) && sequences++ == 0) {
      place = PlaceOf(input);
    } else {
      return false;
    }
    return true;
  });
  head.chunk = sequences == 1 && (place.total_rows > 0 || place.first_row > 0);
  head.later_chunk = head.chunk && place.first_row > 0;
  return head;
}

bool IsLast(const v1::Sequence& chunk) {
  return chunk.first_row() >= chunk.total_rows() ||
         chunk.total_rows() - chunk.first_row() <= static_cast<uint64_t>(RowsOf(chunk));
}

int64_t WholeSize(const v1::EmbedRequest& first, int64_t bytes) {
  const v1::Sequence& chunk = first.sequences(0);
  const auto rows = static_cast<double>(std::max<int64_t>(RowsOf(chunk), 1));
  const double whole = static_cast<double>(bytes) / rows * static_cast<double>(chunk.total_rows());
  return static_cast<int64_t>(
      std::min(std::max(whole, static_cast<double>(bytes)), static_cast<double>(kMostBytes)));
}

absl::StatusOr<std::unique_ptr<Upload>> Upload::Begin(const Signature& signature,
                                                      uint64_t total_rows) {
  const InputSpec* x = signature.FindInput("x");
  const bool rows = x != nullptr && !x->axes.empty() && x->axes[0].letter != '\0' &&
                    (x->kind == InputKind::kToken || x->kind == InputKind::kFloat);
  // A length that no shape can hold is cut, because it is more than any sequence has.
  const auto length = static_cast<int64_t>(std::min<uint64_t>(total_rows, kMostBytes));
  Shape shape = {length};
  for (size_t i = 1; rows && i < x->axes.size() && x->axes[i].letter == '\0'; ++i) {
    shape.push_back(x->axes[i].size);
  }
  if (!rows || shape.size() != x->axes.size() || x->folds) {
    return absl::InvalidArgumentError(
        "the model has no input 'x' of rows of one size, which alone can come in chunks");
  }
  absl::Status status = CheckLength(signature, x->axes[0].letter, total_rows);
  if (!status.ok()) return status;
  const auto bytes = CheckedByteSize(DType::kI64, shape);
  if (!bytes || *bytes > kMostBytes) {
    return absl::InvalidArgumentError("total_rows is " + std::to_string(total_rows) +
                                      ", which no memory holds");
  }
  Signature chunk;
  chunk.inputs = {*x};
  chunk.outputs = signature.outputs;
  chunk.allow_nonfinite = signature.allow_nonfinite;
  return std::unique_ptr<Upload>(new Upload(std::move(chunk), std::move(shape)));
}

int64_t Upload::bytes() const {
  return ElementCount(shape_) * static_cast<int64_t>(ByteSize(dtype()));
}

absl::Status Upload::Hold(Inflight::Reservation place, int64_t chunk_bytes) {
  place_ = std::move(place);
  chunk_bytes_ = chunk_bytes;
  try {
    std::tie(x_, bytes_) = Tensor::AllocateUnfilled(dtype(), shape_);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("there is no memory for a sequence of " +
                                        std::to_string(bytes()) + " bytes");
  }
  return absl::OkStatus();
}

absl::Status Upload::ReserveChunk(int64_t bytes) {
  if (bytes <= chunk_bytes_) return absl::OkStatus();
  absl::Status status = place_.Grow(bytes - chunk_bytes_);
  if (status.ok()) chunk_bytes_ = bytes;
  return status;
}

absl::Status Upload::Add(const v1::Sequence& chunk) {
  if (static_cast<int64_t>(chunk.total_rows()) != total_rows() ||
      static_cast<int64_t>(chunk.first_row()) != rows_) {
    return absl::InvalidArgumentError(
        "a chunk is said to begin with row " + std::to_string(chunk.first_row()) + " of " +
        std::to_string(chunk.total_rows()) + ", expected row " + std::to_string(rows_) + " of " +
        std::to_string(total_rows()) + ": the chunks of a sequence come in order");
  }
  auto item = ToItem(chunk, {}, nullptr);
  absl::Status status = item.status();
  if (status.ok()) status = Validate(chunk_, *item);
  if (!status.ok()) return InPart(rows_, status);
  const Tensor& x = item->inputs.at("x");
  const int64_t count = x.shape()[0];
  if (count > total_rows() - rows_) {
    return InPart(rows_, absl::InvalidArgumentError(
                             "it has " + std::to_string(count) + " rows, expected at most " +
                             std::to_string(total_rows() - rows_) + ", since total_rows is " +
                             std::to_string(total_rows())));
  }
  std::byte* target = bytes_ + rows_ * (bytes() / total_rows());
  if (tokens()) {
    ConvertToInt64(x, reinterpret_cast<int64_t*>(target));
  } else {
    ConvertToFloat(x, reinterpret_cast<float*>(target));
  }
  rows_ += count;
  return absl::OkStatus();
}

absl::Status Upload::Paused(std::chrono::nanoseconds pause) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(pause).count();
  return absl::DeadlineExceededError(
      "no chunk of the sequence has come for " + std::to_string(seconds) +
      " s (max_upload_pause_seconds), after " + std::to_string(rows_) + " of " +
      std::to_string(total_rows()) + " rows");
}

absl::Status Upload::Incomplete() const {
  return absl::InvalidArgumentError("the stream ended after " + std::to_string(rows_) + " of " +
                                    std::to_string(total_rows()) + " rows of the sequence");
}

}  // namespace linserve
