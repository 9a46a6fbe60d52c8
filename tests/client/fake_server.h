#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/library/embedding_client.h"
#include "linserve/v1/embedding.grpc.pb.h"

namespace linserve {

// Says what the fake server does wrong.
struct FakeFaults {
  int refuse_calls = 0;         // so many calls end as UNAVAILABLE at once
  int break_calls = 0;          // so many calls end as UNAVAILABLE after their first result
  int put_off_calls = 0;        // so many calls are RESOURCE_EXHAUSTED, with a time to come back
  int unavailable_results = 0;  // so many sequences end as UNAVAILABLE
  int misplaced_chunks = 0;     // so many later chunks of sessions do not go on where those stand
  bool drop_last_result = false;
  bool break_streams = false;  // streams break after their first answer
};

// Serves a model of three-column rows (token, place, length). It answers the sequences of a request
// from last to first. Token 1013 is refused; token 1099 is never answered.
class FakeService final : public v1::EmbeddingService::Service {
 public:
  explicit FakeService(FakeFaults faults) : faults_(faults) {}

  grpc::Status Embed(grpc::ServerContext* context, const v1::EmbedRequest* request,
                     grpc::ServerWriter<v1::EmbedResponse>* writer) override;
  grpc::Status EmbedStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::EmbedResponse, v1::EmbedRequest>* stream) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        v1::Model* response) override;

  // Lets so many further calls end as UNAVAILABLE at once.
  void Refuse(int calls);

  // Returns the number of sequences of every Embed call so far.
  std::vector<int> calls() const;

 private:
  // Makes the messages that answer one sequence.
  std::vector<v1::EmbedResponse> Answer(const v1::EmbedRequest& request, int index);
  // Returns the answer as it is sent: as one message, if the request says so.
  std::vector<v1::EmbedResponse> Sent(const v1::EmbedRequest& request, int index);
  bool Take(int FakeFaults::*fault);

  mutable std::mutex mutex_;
  FakeFaults faults_;
  std::vector<int> calls_;
};

class FakeServer {
 public:
  explicit FakeServer(FakeFaults faults = {});
  ~FakeServer();

  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }
  // Returns the options of a client that does not pause long.
  ClientOptions client_options() const;
  FakeService& service() { return service_; }

 private:
  FakeService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Makes a sequence of these token ids.
NamedSequence Tokens(std::string id, const std::vector<int64_t>& ids);

}  // namespace linserve
