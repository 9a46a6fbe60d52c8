#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "inference/grpc_service.pb.h"
#include "support/test_server.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

// Opens a plain connection to the server's port, on which anything may be sent.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  explicit RawConnection(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection() { ::close(socket_); }

  void Send(const std::string& bytes) {
    // The server may have hung up already, which is its right.
    (void)!::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // Returns whether the server sends these bytes before it hangs up.
  bool WaitFor(const std::string& expected) {
    char bytes[4096];
    while (received_.find(expected) == std::string::npos) {
      const ssize_t size = ::recv(socket_, bytes, sizeof(bytes), 0);
      if (size <= 0) return false;
      received_.append(bytes, static_cast<size_t>(size));
    }
    return true;
  }

  // Returns whether the server has hung up, without waiting.
  bool HungUp() {
    char bytes[4096];
    ssize_t size = 0;
    while ((size = ::recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
    }
    return size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

  void WaitForTheServerToHangUp() {
    char bytes[4096];
    while (::recv(socket_, bytes, sizeof(bytes), 0) > 0) {
    }
  }

 private:
  int socket_;
  std::string received_;
};

// Returns what every HTTP/2 connection begins with, and empty settings.
std::string Preface() {
  return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
}

std::string Frame(char type, char flags, const std::string& payload, int stream = 1) {
  const std::string header = {'\0',
                              static_cast<char>(payload.size() >> 8),
                              static_cast<char>(payload.size()),
                              type,
                              flags,
                              static_cast<char>(stream >> 24),
                              static_cast<char>(stream >> 16),
                              static_cast<char>(stream >> 8),
                              static_cast<char>(stream)};
  return header + payload;
}

// Makes the headers of a call by the bytes of RFC 7541.
std::string Headers(const std::string& method) {
  std::string headers;
  const auto add = [&](const std::string& name, const std::string& value) {
    headers += {'\0', static_cast<char>(name.size())};
    headers += name;
    headers += static_cast<char>(value.size());
    headers += value;
  };
  add(":method", "POST");
  add(":scheme", "http");
  add(":path", method);
  add(":authority", "localhost");
  add("te", "trailers");
  add("content-type", "application/grpc");
  return headers;
}

// Makes a call with one message, by the bytes of RFC 9113.
std::string Call(const std::string& method, const std::string& message) {
  const std::string prefix = {0, 0, 0, 0, static_cast<char>(message.size())};
  return Preface() + Frame(1, 4, Headers(method)) + Frame(0, 1, prefix + message);
}

// gRPC's own clients read these trailers and do not hand them on.
TEST(Connection, TrailersOfEveryKindOfCallTellTheLoad) {
  TestServer server;
  v1::EmbedRequest native;
  native.set_model("tokens");
  native.add_sequences()->add_token_ids(1);
  inference::ModelInferRequest infer;
  infer.set_model_name("floats");
  for (const auto& [method, message] :
       {std::pair<std::string, std::string>("linserve.v1.EmbeddingService/Embed",
                                            native.SerializeAsString()),
        {"linserve.v1.EmbeddingService/EmbedStream", native.SerializeAsString()},
        {"inference.GRPCInferenceService/ModelInfer", infer.SerializeAsString()},
        {"inference.GRPCInferenceService/ModelStreamInfer", infer.SerializeAsString()}}) {
    RawConnection connection(server.grpc().port());
    connection.Send(Call("/" + method, message));
    EXPECT_TRUE(connection.WaitFor("endpoint-load-metrics-bin")) << method;
  }
}

// Resets calls at once, until the server hangs up.
void Flood(RawConnection& connection, const std::string& method) {
  const std::string headers = Headers(method);
  connection.Send(Preface());
  int stream = 1;
  while (!connection.HungUp()) {
    std::string calls;
    for (int i = 0; i < 100; ++i, stream += 2) {
      calls += Frame(1, 4, headers, stream) + Frame(3, 0, std::string("\0\0\0\10", 4), stream);
    }
    connection.Send(calls);
  }
}

// The bound on streams is of no use against calls that are reset at once (CVE-2023-44487).
TEST(Connection, ThatResetsCallsFasterThanTheyAreDroppedIsHungUpOn) {
  TestServer server({.grpc = {.max_streams_per_connection = 1}});
  for (const std::string method : {"/linserve.v1.EmbeddingService/Embed", "/no.such/Method"}) {
    RawConnection flood(server.grpc().port());
    Flood(flood, method);
  }
  EXPECT_TRUE(Serves(server));
  EXPECT_TRUE(WaitUntil([&] { return server.Scrape()["linserve_reset_floods_total"] >= 2; }));
}

TEST(Connection, ByAUnixSocketThatResetsCallsIsHungUpOnAndNoOther) {
  const TempDir directory;
  const std::string path = directory.File("linserve.sock");
  TestServer server({.grpc = {.unix_socket = {.path = path}, .max_streams_per_connection = 1}});
  std::vector<std::unique_ptr<RawConnection>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::make_unique<RawConnection>(path));
    others.back()->Send(Preface());
  }
  for (int i = 0; i < 3; ++i) {
    RawConnection flood(path);
    Flood(flood, "/linserve.v1.EmbeddingService/Embed");
  }
  EXPECT_TRUE(WaitUntil([&] { return server.Scrape()["linserve_reset_floods_total"] >= 3; }));
  for (const auto& other : others) EXPECT_FALSE(other->HungUp());
  EXPECT_TRUE(Serves(server));
}

// A reference of one byte to a header of the table becomes an entry of 64 bytes (CVE-2023-33953).
TEST(Connection, OfHeadersWithoutAnEndIsHungUpOn) {
  const TempDir directory;
  const std::string path = directory.File("linserve.sock");
  TestServer server({.grpc = {.unix_socket = {.path = path}}});
  const std::string added = std::string("\x40\1k\0", 4);  // header "k", from now on 62 of the table
  const std::string begin = Headers("/linserve.v1.EmbeddingService/Embed") + added;
  const std::string more = Frame(9, 0, std::string(16000, '\xbe'), 1);
  const auto flood = [&](RawConnection connection) {
    connection.Send(Preface() + Frame(1, 0, begin, 1));
    while (!connection.HungUp()) connection.Send(more);
  };
  flood(RawConnection(server.grpc().port()));
  flood(RawConnection(path));
  EXPECT_TRUE(WaitUntil([&] { return server.Scrape()["linserve_memory_floods_total"] >= 2; }));
  EXPECT_TRUE(Serves(server));
}

TEST(Connection, GarbageIsHungUpOn) {
  TestServer server;
  std::minstd_rand random(1);
  for (int i = 0; i < 20; ++i) {
    std::string garbage(static_cast<size_t>(1 + i * 100), '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    garbage[0] = 'x';  // no preface
    RawConnection connection(server.grpc().port());
    connection.Send(garbage);
    connection.WaitForTheServerToHangUp();
  }
  EXPECT_TRUE(Serves(server));
}

TEST(Connection, GarbageAfterAGoodStartIsHungUpOn) {
  TestServer server;
  for (const std::string& frame :
       {std::string("\xff\xff\xff\4\0\0\0\0\0", 9),                 // settings of 16 MB
        std::string("\0\0\4\1\4\0\0\0\1zzzz", 13),                  // headers that are none
        std::string("\0\0\5\0\1\0\0\0\7\0\0\0\0\0", 14),            // data of a stream never opened
        std::string("\0\0\10\6\0\0\0\0\1\0\0\0\0\0\0\0\0", 17)}) {  // a ping on a stream
    RawConnection connection(server.grpc().port());
    connection.Send(Preface() + frame);
  }
  EXPECT_TRUE(Serves(server));
}

TEST(Connection, MayBeClosedAtAnyByte) {
  TestServer server;
  const std::string start = Preface() + std::string("\0\0\100\1\4\0\0\0\1\x83\x86", 11);
  for (size_t size = 0; size <= start.size(); ++size) {
    RawConnection connection(server.grpc().port());
    connection.Send(start.substr(0, size));
  }
  EXPECT_TRUE(Serves(server));
}

TEST(Connection, AClientThatVanishesMidRequestLeavesNothingBehind) {
  TestServer server;
  server.tokens().ComputeWithoutEnd();
  Ended ended;
  {
    EmbeddingClient client(server.client_options());
    const auto stream = client.OpenStream();
    ASSERT_TRUE(stream->Send(CallOf("tokens", {Tokens("a", {1})}), ended.stream_callback()).ok());
    ASSERT_TRUE(server.tokens().WaitForStarted(1));
  }
  EXPECT_FALSE(ended.status().ok());
  EXPECT_TRUE(server.WaitFor(Abandoned("batch"), 1));
  EXPECT_TRUE(server.WaitFor(InFlight("EmbedStream"), 0));
  EXPECT_TRUE(server.WaitFor("linserve_open_streams{rpc=\"EmbedStream\"}", 0));
  server.tokens().LetGo();
  EXPECT_TRUE(Serves(server));
}

TEST(Connection, MayBeOverAUnixSocket) {
  const TempDir directory;
  const std::string path = directory.File("linserve.sock");
  TestServer server({.grpc = {.unix_socket = {.path = path}}});
  ClientOptions options = server.client_options();
  options.target = "unix:" + path;
  EmbeddingClient client(options);
  EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {1})})).ok());
  Metrics metrics({});
  ModelRepository repository(metrics);
  EXPECT_THAT(GrpcServer::Start({.address = {"127.0.0.1", 0}, .unix_socket = {.path = path}},
                                repository, metrics),
              IsStatus(absl::StatusCode::kUnavailable, "another program listens"));
  EXPECT_TRUE(Serves(server));
}

TEST(Connection, ToAUnixSocketThatCannotBeEndsTheStart) {
  Metrics metrics({});
  ModelRepository repository(metrics);
  EXPECT_THAT(GrpcServer::Start(
                  {.address = {"127.0.0.1", 0}, .unix_socket = {.path = "/nowhere/linserve.sock"}},
                  repository, metrics),
              IsStatus(absl::StatusCode::kUnavailable, "cannot listen on"));
}

TEST(Connection, OverAUnixSocketIsForThoseWhomItsModeLetsIn) {
  namespace fs = std::filesystem;
  const TempDir directory;
  const std::string path = directory.File("linserve.sock");
  // What the process was started with changes nothing.
  for (const auto& [mode, mask] : {std::pair<mode_t, mode_t>{0600, 0}, {0666, 077}, {0770, 022}}) {
    const mode_t before = ::umask(mask);
    const TestServer server({.grpc = {.unix_socket = {.path = path, .mode = mode}}});
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(mode));
    EXPECT_EQ(::umask(before), mask);
  }
}

// Makes a call, and returns its end, which the caller may wait for.
std::future<grpc::Status> CallTokens(v1::EmbeddingService::Stub& stub) {
  return std::async(std::launch::async, [&stub] {
    v1::EmbedRequest request;
    request.set_model("tokens");
    request.add_sequences()->add_token_ids(1);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);  // a connection may be too old before its first call
    const auto reader = stub.Embed(&context, request);
    v1::EmbedResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  });
}

// The caller is told to connect anew, and no call is lost by it.
TEST(Connection, EndsAtItsAgeWithoutLosingACall) {
  TestServer server({.grpc = {.max_connection_age = std::chrono::milliseconds(200)}});
  const auto channel = grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials());
  const auto stub = v1::EmbeddingService::NewStub(channel);
  for (int i = 0; i < 3; ++i) {
    server.tokens().Hold();
    std::future<grpc::Status> call = CallTokens(*stub);
    while (server.Scrape()[InFlight()] == 0) {
      if (call.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout) continue;
      // gRPC's client may choose the connection for a call, and hear then that it has ended.
      ASSERT_EQ(call.get().error_code(), grpc::StatusCode::UNAVAILABLE);
      call = CallTokens(*stub);
    }
    const auto limit = std::chrono::system_clock::now() + std::chrono::minutes(1);
    while (channel->GetState(false) == GRPC_CHANNEL_READY) {
      ASSERT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY, limit));
    }
    server.tokens().LetGo();
    const grpc::Status status = call.get();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(server.WaitFor(InFlight(), 0));
  }
}

TEST(Connection, ACallWithTooMuchMetadataEndsAlone) {
  TestServer server;
  const auto stub = server.NewStub();
  grpc::ClientContext context;
  const auto neighbour = stub->EmbedStream(&context);
  v1::EmbedRequest request;
  request.set_model("tokens");
  request.add_sequences()->add_token_ids(1);
  const auto lives = [&](const std::string& id) {
    request.set_request_id(id);
    v1::EmbedResponse response;
    return neighbour->Write(request) && neighbour->Read(&response) && response.code() == 0;
  };
  EXPECT_TRUE(lives("1"));
  for (const int kib : {15, 20, 100}) {
    grpc::ClientContext heavy;
    for (int i = 0; i < kib; ++i) heavy.AddMetadata("key", std::string(985, 'a'));
    v1::Model model;
    v1::GetModelRequest question;
    question.set_model("tokens");
    const grpc::Status status = stub->GetModel(&heavy, question, &model);
    EXPECT_EQ(status.ok(), kib <= 16);
    if (status.ok()) continue;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), testing::HasSubstr("max_metadata_bytes"));
  }
  EXPECT_TRUE(lives("2"));
}

TEST(Rpcs, HaveTheirSeriesBeforeTheirFirstCall) {
  const TestServer server;
  const auto scraped = server.Scrape();
  for (const char* rpc :
       {"Embed", "EmbedStream", "Generate", "ModelInfer", "ModelStreamInfer", "tei.Embed",
        "tei.EmbedAllStream", "tei.Tokenize", "tei.Decode", "tei.PredictPair", "tei.Rerank"}) {
    const std::string series = std::string(R"(linserve_in_flight_requests{rpc=")") + rpc + "\"}";
    EXPECT_TRUE(scraped.samples.contains(series)) << rpc;
  }
}

}  // namespace
}  // namespace linserve
