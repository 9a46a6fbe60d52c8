#include "serving/rpc_limits.h"

namespace linserve {

void RpcLimits::Bind(OptionTable& table) {
  table.Bytes("max_message_bytes", max_message_bytes, 1024, (int64_t{1} << 31) - 1,
              "The largest gRPC message, either way, and the largest body of an HTTP request");
  table.Bytes("max_metadata_bytes", max_metadata_bytes, 1024, 16 << 20,
              "The most metadata of a gRPC call: its names and values, and 32 bytes for each pair");
  table.Integer("max_sequences_per_request", max_sequences_per_request, 1, 1 << 20,
                "How many sequences one request may hold; more are refused with INVALID_ARGUMENT");
  table.Bytes("max_text_bytes", max_text_bytes, 1, 64 << 20,
              "The longest text, in bytes, before it becomes tokens");
  table.Duration(
      "max_upload_pause_seconds", max_upload_pause, 0.1, 86400,
      "How long EmbedStream waits for the next chunk of a sequence before it gives it up");
  table.Integer("max_requests_per_stream", max_requests_per_stream, 1, 1 << 20,
                "How many requests one stream may have in flight; past that, reading pauses");
  table.Bytes("chunk_bytes", chunk_bytes, 1024, 64 << 20,
              "The rows of a long result are sent in messages of about this size");
}

}  // namespace linserve
