#include "rpc/grpc_options.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

namespace linserve {

void GrpcOptions::BindAddress(OptionTable& table) {
  address.Bind(table, "grpc_address", "HOST:PORT of the gRPC services; port 0: any free one");
  unix_socket.Bind(table);
}

void GrpcOptions::BindLimits(OptionTable& table) {
  table.Section("What may be in flight");
  inflight.Bind(table);
  table.Integer("max_streams_per_connection", max_streams_per_connection, 1, 1 << 20,
                "How many gRPC calls one connection may have at once; more wait at the caller");
  table.Section("Limits of one message, one request and one stream");
  limits.Bind(table);
  table.Duration("max_connection_age_seconds", max_connection_age, 0, 86400,
                 "After how long callers are told to connect anew, so that they spread over the "
                 "servers behind one name; open calls go on; 0: never");
}

// The arguments are set by gRPC's macros, because a misspelt name is ignored without a word.
void GrpcOptions::Configure(grpc::ServerBuilder& builder) const {
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.max_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(limits.max_message_bytes));
  // Unpack() does it, within bounds. It cannot tell zlib's format from an unpacked message.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // A caller who exceeds this loses the connection, with all of its calls. So it is only for those
  // who do not mean well; CallerOf() refuses the calls of others.
  constexpr int64_t kBeyond = 8;
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             static_cast<int>(kBeyond * limits.max_metadata_bytes));
  // gRPC reads up to 4 MiB at once of a caller who sends much. Of that it may make a quarter of a
  // gigabyte before MemoryGuard has a say.
  constexpr int kReadAtOnce = 64 << 10;
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadAtOnce);
  // With reuseport, a second server would share the port silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(max_streams_per_connection));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
  if (max_connection_age.count() > 0) {
    // The caller is told to connect anew, perhaps elsewhere; open calls go on. gRPC itself spreads
    // the ages, so that callers that came together do not all leave together.
    builder.AddChannelArgument(
        GRPC_ARG_MAX_CONNECTION_AGE_MS,
        static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(max_connection_age).count()));
  }
}

}  // namespace linserve
