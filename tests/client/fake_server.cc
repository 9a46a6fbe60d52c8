#include "client/fake_server.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace linserve {
namespace {

constexpr uint32_t kRefused = 1013;
constexpr uint32_t kStuck = 1099;
constexpr size_t kColumns = 3;

// Says that there will be room in a millisecond.
grpc::Status PutOff() {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_nanos(1'000'000);
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full", details.SerializeAsString()};
}

bool Has(const v1::Sequence& sequence, uint32_t token) {
  const auto& ids = sequence.token_ids();
  return std::find(ids.begin(), ids.end(), token) != ids.end();
}

bool IsStuck(const v1::EmbedRequest& request) {
  return std::any_of(request.sequences().begin(), request.sequences().end(),
                     [](const auto& sequence) { return Has(sequence, kStuck); });
}

std::vector<float> RowsOf(const v1::Sequence& sequence, bool pooled) {
  const auto length = static_cast<float>(sequence.token_ids_size());
  std::vector<float> rows;
  for (int i = 0; i < sequence.token_ids_size(); ++i) {
    const auto token = static_cast<float>(sequence.token_ids(i));
    rows.insert(rows.end(), {token, static_cast<float>(i), length});
  }
  if (!pooled) return rows;
  std::vector<float> mean(kColumns);
  for (size_t i = 0; i < rows.size(); ++i) mean[i % kColumns] += rows[i] / length;
  return mean;
}

}  // namespace

bool FakeService::Take(int FakeFaults::*fault) {
  std::lock_guard lock(mutex_);
  if (faults_.*fault == 0) return false;
  --(faults_.*fault);
  return true;
}

std::vector<int> FakeService::calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

std::vector<v1::EmbedResponse> FakeService::Answer(const v1::EmbedRequest& request, int index) {
  const v1::Sequence& sequence = request.sequences(index);
  v1::EmbedResponse response;
  response.set_request_id(request.request_id());
  response.set_index(static_cast<uint32_t>(index));
  response.set_sequence_id(sequence.id());
  response.set_tokens(static_cast<uint64_t>(sequence.token_ids_size()));
  if (Has(sequence, kRefused) || Take(&FakeFaults::unavailable_results)) {
    const bool refused = Has(sequence, kRefused);
    response.set_code(refused ? grpc::INVALID_ARGUMENT : grpc::UNAVAILABLE);
    response.set_message(refused ? "token 1013 brings bad luck" : "draining");
    response.set_last(true);
    return {response};
  }
  const bool later = sequence.has_session() && !sequence.session().start();
  if (later && Take(&FakeFaults::misplaced_chunks)) {
    response.set_code(grpc::FAILED_PRECONDITION);
    response.set_message("the session has read the chunk all the same");
    response.mutable_session()->set_position(sequence.session().position() + 1);
    response.set_last(true);
    return {response};
  }
  const bool pooled = request.options().pooling() != v1::POOLING_NONE;
  const std::vector<float> rows = RowsOf(sequence, pooled);
  const size_t total = rows.size() / kColumns;
  const size_t step = std::max<size_t>(request.options().rows_per_chunk(), 1);
  response.set_output("y");
  response.set_total_rows(total);
  std::vector<v1::EmbedResponse> messages;
  for (size_t row = 0; row < total; row += step) {
    const size_t count = std::min(step, total - row);
    v1::EmbedResponse message = response;
    message.set_row_offset(row);
    message.mutable_rows()->set_dtype(v1::DATA_TYPE_F32);
    if (!pooled) message.mutable_rows()->add_shape(static_cast<int64_t>(count));
    message.mutable_rows()->add_shape(kColumns);
    message.mutable_rows()->set_data(rows.data() + row * kColumns,
                                     count * kColumns * sizeof(float));
    messages.push_back(std::move(message));
  }
  messages.back().set_last(true);
  messages.back().mutable_timing()->set_queue_ns(1'000'000);
  messages.back().mutable_timing()->set_compute_ns(2'000'000);
  messages.back().mutable_timing()->set_batch_sequences(
      static_cast<uint32_t>(request.sequences_size()));
  return messages;
}

std::vector<v1::EmbedResponse> FakeService::Sent(const v1::EmbedRequest& request, int index) {
  std::vector<v1::EmbedResponse> messages = Answer(request, index);
  if (!request.options().together()) return messages;
  for (size_t i = 1; i < messages.size(); ++i) *messages[0].add_others() = messages[i];
  messages.resize(1);
  return messages;
}

void FakeService::Refuse(int calls) {
  const std::lock_guard lock(mutex_);
  faults_.refuse_calls = calls;
}

grpc::Status FakeService::Embed(grpc::ServerContext* context, const v1::EmbedRequest* request,
                                grpc::ServerWriter<v1::EmbedResponse>* writer) {
  {
    std::lock_guard lock(mutex_);
    calls_.push_back(request->sequences_size());
  }
  if (Take(&FakeFaults::refuse_calls)) return {grpc::StatusCode::UNAVAILABLE, "loading"};
  if (Take(&FakeFaults::put_off_calls)) return PutOff();
  while (IsStuck(*request) && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool breaks = Take(&FakeFaults::break_calls);
  for (int i = request->sequences_size() - 1; i >= (faults_.drop_last_result ? 1 : 0); --i) {
    for (const auto& message : Sent(*request, i)) writer->Write(message);
    if (breaks) return {grpc::StatusCode::UNAVAILABLE, "going down"};
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::EmbedStream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::EmbedResponse, v1::EmbedRequest>* stream) {
  v1::EmbedRequest request;
  while (stream->Read(&request)) {
    if (IsStuck(request)) continue;
    if (request.sequences_size() == 0) {
      v1::EmbedResponse failure;
      failure.set_request_id(request.request_id());
      failure.set_code(grpc::INVALID_ARGUMENT);
      failure.set_message("no sequences");
      failure.set_request_failed(true);
      stream->Write(failure);
      continue;
    }
    for (int i = request.sequences_size() - 1; i >= 0; --i) {
      for (const auto& message : Sent(request, i)) stream->Write(message);
    }
    if (faults_.break_streams) return {grpc::StatusCode::UNAVAILABLE, "going down"};
  }
  return context->IsCancelled() ? grpc::Status::CANCELLED : grpc::Status::OK;
}

grpc::Status FakeService::ListModels(grpc::ServerContext* context, const v1::ListModelsRequest*,
                                     v1::ListModelsResponse* response) {
  v1::GetModelRequest any;
  return GetModel(context, &any, response->add_models());
}

grpc::Status FakeService::GetModel(grpc::ServerContext*, const v1::GetModelRequest* request,
                                   v1::Model* response) {
  if (!request->model().empty() && request->model() != "fake") {
    return {grpc::StatusCode::NOT_FOUND, "no model '" + request->model() + "'"};
  }
  response->set_name("fake");
  response->set_version(1);
  response->set_state("READY");
  response->set_architecture("fake.Fake");
  v1::TensorSpec* x = response->add_inputs();
  x->set_name("x");
  x->set_kind("token");
  x->add_axes("n");
  x->set_vocabulary(256);
  v1::TensorSpec* y = response->add_outputs();
  y->set_name("y");
  y->add_axes("n");
  y->add_axes("3");
  v1::LengthLimit* limit = response->add_limits();
  limit->set_axis("n");
  limit->set_longest(64);
  return grpc::Status::OK;
}

FakeServer::FakeServer(FakeFaults faults) : service_(faults) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

ClientOptions FakeServer::client_options() const {
  ClientOptions options;
  options.target = target();
  options.backoff.initial = std::chrono::milliseconds(2);
  return options;
}

NamedSequence Tokens(std::string id, const std::vector<int64_t>& ids) {
  const Shape shape = {static_cast<int64_t>(ids.size())};
  return {std::move(id), {{"x", Tensor::FromInts(shape, ids)}}};
}

}  // namespace linserve
