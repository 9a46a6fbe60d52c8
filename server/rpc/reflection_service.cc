#include "rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "core/strings/quote.h"
#include "core/threads/guarded.h"
#include "grpc/health/v1/health.pb.h"
#include "rpc/calls/grpc_status.h"
#include "rpc/calls/received.h"
#include "rpc/calls/started.h"
#include "rpc/messages/wire.h"

namespace linserve {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ExtensionRequest;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

const DescriptorPool& Pool() {
  // gRPC's own health service has no description there, unless this file is linked.
  grpc::health::v1::HealthCheckRequest::descriptor();
  return *DescriptorPool::generated_pool();
}

absl::Status NotFound(const std::string& what, const std::string& name) {
  return absl::NotFoundError("there is no " + what + " " + Quoted(name));
}

// Adds a file, and before it those that it imports.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
             ServerReflectionResponse& response) {
  if (!added.insert(&file).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), added, response);
  }
  google::protobuf::FileDescriptorProto description;
  file.CopyTo(&description);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(
      description.SerializeAsString());
}

absl::Status Describe(const FileDescriptor* file, const std::string& what, const std::string& name,
                      ServerReflectionResponse& response) {
  if (file == nullptr) return NotFound(what, name);
  std::set<const FileDescriptor*> added;
  AddFile(*file, added, response);
  return absl::OkStatus();
}

const FileDescriptor* FileOf(const ExtensionRequest& request) {
  const auto* type = Pool().FindMessageTypeByName(request.containing_type());
  if (type == nullptr) return nullptr;
  const auto* field = Pool().FindExtensionByNumber(type, request.extension_number());
  return field == nullptr ? nullptr : field->file();
}

absl::Status AddExtensions(const std::string& type_name, ServerReflectionResponse& response) {
  const auto* type = Pool().FindMessageTypeByName(type_name);
  if (type == nullptr) return NotFound("type", type_name);
  std::vector<const FieldDescriptor*> extensions;
  Pool().FindAllExtensions(type, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(type_name);
  for (const FieldDescriptor* field : extensions) numbers.add_extension_number(field->number());
  return absl::OkStatus();
}

absl::Status AnswerTo(const ServerReflectionRequest& request,
                      const std::vector<std::string>& services,
                      ServerReflectionResponse& response) {
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return Describe(Pool().FindFileByName(request.file_by_filename()), "file",
                      request.file_by_filename(), response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return Describe(Pool().FindFileContainingSymbol(request.file_containing_symbol()), "symbol",
                      request.file_containing_symbol(), response);
    case ServerReflectionRequest::kFileContainingExtension:
      return Describe(FileOf(request.file_containing_extension()), "extension of",
                      request.file_containing_extension().containing_type(), response);
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return AddExtensions(request.all_extension_numbers_of_type(), response);
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(name);
      }
      return absl::OkStatus();
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the request asks for nothing");
}

// Answers questions one by one. It owns itself until gRPC is done with it.
class ReflectionCall : public ReflectionStream {
 public:
  explicit ReflectionCall(const std::vector<std::string>& services) : services_(services) {
    StartRead(&question_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    const absl::Status answered = Guarded("an answer", [this] { return AnswerQuestion(); });
    if (!answered.ok()) return Finish(ToGrpcStatus(answered));
    StartWrite(&answer_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the caller left"});
    StartRead(&question_);
  }

  void OnDone() override { delete this; }

  absl::Status AnswerQuestion() {
    ServerReflectionRequest request;
    absl::Status parsed = ParseQuestion(question_, request);
    if (!parsed.ok()) return parsed;
    ServerReflectionResponse response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    if (absl::Status fault = AnswerTo(request, services_, response); !fault.ok()) {
      response.mutable_error_response()->set_error_code(static_cast<int32_t>(fault.code()));
      response.mutable_error_response()->set_error_message(MessageOf(fault));
    }
    WireMessage wire;
    wire.Add(response);
    answer_ = std::move(wire).Take();
    return absl::OkStatus();
  }

  const std::vector<std::string>& services_;
  grpc::ByteBuffer question_;
  grpc::ByteBuffer answer_;
};

}  // namespace

ReflectionStream* AnswerReflection(const std::vector<std::string>& services) {
  return Started<ReflectionStream>([&] { return new ReflectionCall(services); });
}

}  // namespace linserve
