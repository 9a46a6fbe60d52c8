#include <functional>

#include "rpc/oip/infer_requests.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

struct Fault {
  std::string what;
  std::function<void(ModelInferRequest&)> make;
  grpc::StatusCode code;
  std::vector<std::string> words;
};

const std::vector<Fault>& Faults() {
  using grpc::StatusCode;
  static const std::vector<Fault> faults = {
      {"model",
       [](auto& r) { r.set_model_name("no"); },
       StatusCode::NOT_FOUND,
       {"[request id: 7] model 'no' is not found"}},
      {"no id",
       [](auto& r) { r.set_model_name("no"), r.clear_id(); },
       StatusCode::NOT_FOUND,
       {"-", "] model 'no' is not found"}},
      {"no name",
       [](auto& r) { r.clear_model_name(); },
       StatusCode::INVALID_ARGUMENT,
       {"no model was named", "; name one in the field 'model_name'"}},
      {"version",
       [](auto& r) { r.set_model_version("9"); },
       StatusCode::NOT_FOUND,
       {"model 'tokens' version 9 is not found"}},
      {"version text",
       [](auto& r) { r.set_model_version("v1"); },
       StatusCode::INVALID_ARGUMENT,
       {"version", "'v1'"}},
      {"loading", [](auto& r) { r.set_model_name("late"); }, StatusCode::UNAVAILABLE, {"late"}},
      {"missing",
       [](auto& r) { r.clear_inputs(), r.clear_raw_input_contents(); },
       StatusCode::INVALID_ARGUMENT,
       {"expected 1 inputs but got 0 inputs for model 'tokens'. Got input(s) [], but missing "
        "required input(s) ['x']. Please provide all required input(s)."}},
      {"extra",
       [](auto& r) {
         AddRaw<float>(r, "w", "FP32", {2, 1}, {1, 1});
       },
       StatusCode::INVALID_ARGUMENT,
       {"unexpected inference input 'w' for model 'tokens'. The model takes ['x']"}},
      {"another name",
       [](auto& r) { r.mutable_inputs(0)->set_name("ids"); },
       StatusCode::INVALID_ARGUMENT,
       {"unexpected inference input 'ids' for model 'tokens', but missing required input(s) "
        "['x']",
        "The model takes ['x']"}},
      {"no axis of the batch",
       [](auto& r) {
         r.mutable_inputs(0)->clear_shape();
         r.mutable_inputs(0)->add_shape(6);
       },
       StatusCode::INVALID_ARGUMENT,
       {"inference input 'x' for model 'tokens': shape [6], expected [batch, n]"}},
      {"twice",
       [](auto& r) {
         AddRaw<int64_t>(r, "x", "INT64", {1, 1}, {1});
       },
       StatusCode::INVALID_ARGUMENT,
       {"'x'", "more than once"}},
      {"datatype",
       [](auto& r) { r.mutable_inputs(0)->set_datatype("FP64"); },
       StatusCode::INVALID_ARGUMENT,
       {"inference input 'x' data-type is 'FP64', but model 'tokens' expects 'INT64'"}},
      {"no datatype",
       [](auto& r) { r.mutable_inputs(0)->set_datatype("int"); },
       StatusCode::INVALID_ARGUMENT,
       {"'int'", "INT64"}},
      {"bytes",
       [](auto& r) { r.mutable_inputs(0)->set_shape(1, 4); },
       StatusCode::INVALID_ARGUMENT,
       {"input byte size mismatch for input 'x' for model 'tokens'. Expected 64, got 48"}},
      {"negative",
       [](auto& r) { r.mutable_inputs(0)->set_shape(1, -3); },
       StatusCode::INVALID_ARGUMENT,
       {"byte size mismatch"}},
      {"overflow",
       [](auto& r) { r.mutable_inputs(0)->set_shape(1, int64_t{1} << 60); },
       StatusCode::INVALID_ARGUMENT,
       {"byte size mismatch"}},
      {"raw entries",
       [](auto& r) { r.add_raw_input_contents("1"); },
       StatusCode::INVALID_ARGUMENT,
       {"got 2 for 1 inputs"}},
      {"no data",
       [](auto& r) { r.clear_raw_input_contents(); },
       StatusCode::INVALID_ARGUMENT,
       {"unable to find data for input tensor 'x' for model 'tokens' in request."}},
      {"both",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->add_int64_contents(1); },
       StatusCode::INVALID_ARGUMENT,
       {"contents field must not be specified when using raw_input_contents for 'x' for model "
        "'tokens'"}},
      {"elements",
       [](auto& r) {
         r.clear_raw_input_contents();
         r.mutable_inputs(0)->mutable_contents()->add_int64_contents(1);
       },
       StatusCode::INVALID_ARGUMENT,
       {"input element size mismatch", "Expected 6, got 1"}},
      {"typed half",
       [](auto& r) {
         r.clear_raw_input_contents();
         r.mutable_inputs(0)->set_datatype("FP16");
         r.mutable_inputs(0)->mutable_contents();
       },
       StatusCode::INVALID_ARGUMENT,
       {"raw_input_contents"}},
      {"huge",
       [](auto& r) {
         r.mutable_inputs(0)->set_datatype("UINT64");
         r.set_raw_input_contents(0, Bytes<uint64_t>({1, 2, 3, 4, 5, ~uint64_t{0}}));
       },
       StatusCode::INVALID_ARGUMENT,
       {"does not fit"}},
      {"token",
       [](auto& r) {
         r.set_raw_input_contents(0, Bytes<int64_t>({1, 2, 3, 4, 100, 5}));
       },
       StatusCode::INVALID_ARGUMENT,
       {"sequence 1 of the batch", "100"}},
      {"empty",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, 0);
         r.set_raw_input_contents(0, "");
       },
       StatusCode::INVALID_ARGUMENT,
       {"no sequences"}},
      {"sequences without elements",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, int64_t{1} << 62);
         r.mutable_inputs(0)->set_shape(1, 0);
         r.set_raw_input_contents(0, "");
       },
       StatusCode::INVALID_ARGUMENT,
       {"4611686018427387904 sequences are empty"}},
      {"output many times",
       [](auto& r) {
         for (int i = 0; i < 60; ++i) r.add_outputs()->set_name("y");
       },
       StatusCode::INVALID_ARGUMENT,
       {"60 outputs are asked for"}},
      {"output twice",
       [](auto& r) {
         for (int i = 0; i < 2; ++i) r.add_outputs()->set_name("y");
       },
       StatusCode::INVALID_ARGUMENT,
       {"'y'", "more than once"}},
      {"lengths",
       [](auto& r) {
         AddRaw<int64_t>(r, "lengths", "INT64", {2}, {3, 4});
       },
       StatusCode::INVALID_ARGUMENT,
       {"lengths", "sequence 1 has 4, expected 1 to 3"}},
      {"output",
       [](auto& r) { r.add_outputs()->set_name("w"); },
       StatusCode::INVALID_ARGUMENT,
       {"'w'"}},
      {"pooling",
       [](auto& r) { (*r.mutable_parameters())["pooling"].set_string_param("sum"); },
       StatusCode::INVALID_ARGUMENT,
       {"'pooling'", "'mean'"}},
      {"normalize",
       [](auto& r) { (*r.mutable_parameters())["normalize"].set_int64_param(1); },
       StatusCode::INVALID_ARGUMENT,
       {"'normalize'", "bool"}},
      {"dtype",
       [](auto& r) { (*r.mutable_parameters())["dtype"].set_string_param("INT64"); },
       StatusCode::INVALID_ARGUMENT,
       {"'dtype'", "'FP16'"}},
      {"priority",
       [](auto& r) { (*r.mutable_parameters())["priority"].set_string_param("high"); },
       grpc::StatusCode::INVALID_ARGUMENT,
       {"'priority'", "1 goes first"}},
      {"timeout",
       [](auto& r) { (*r.mutable_parameters())["timeout"].set_int64_param(-1); },
       StatusCode::INVALID_ARGUMENT,
       {"'timeout'", "microseconds"}},
      {"type of a sequence's id",
       [](auto& r) { (*r.mutable_parameters())["sequence_id"].set_double_param(1.5); },
       StatusCode::INVALID_ARGUMENT,
       {"'sequence_id'", "whole number"}},
      {"type of a sequence's start",
       [](auto& r) { (*r.mutable_parameters())["sequence_start"].set_int64_param(1); },
       StatusCode::INVALID_ARGUMENT,
       {"'sequence_start'", "bool"}},
      {"session",
       [](auto& r) { (*r.mutable_parameters())["sequence_id"].set_int64_param(3); },
       StatusCode::UNIMPLEMENTED,
       {"has no sessions"}},
      {"classes",
       [](auto& r) {
         auto& output = *r.add_outputs();
         output.set_name("y");
         (*output.mutable_parameters())["classification"].set_int64_param(3);
       },
       StatusCode::UNIMPLEMENTED,
       {"classification", "'y'"}},
      {"element out of range",
       [](auto& r) {
         auto& input = *r.mutable_inputs(0);
         input.set_datatype("INT8");
         input.clear_contents();
         r.clear_raw_input_contents();
         int64_t count = 1;
         for (const int64_t size : input.shape()) count *= size;
         for (int64_t i = 0; i < count; ++i) input.mutable_contents()->add_int_contents(300);
       },
       StatusCode::INVALID_ARGUMENT,
       {"out of the range of INT8", "'x'"}},
      {"shared input",
       [](auto& r) {
         auto& parameters = *r.mutable_inputs(0)->mutable_parameters();
         parameters["shared_memory_region"].set_string_param("a");
       },
       StatusCode::UNIMPLEMENTED,
       {"shared memory", "'x'"}},
      {"shared output",
       [](auto& r) {
         auto& output = *r.add_outputs();
         output.set_name("y");
         (*output.mutable_parameters())["shared_memory_region"].set_string_param("a");
       },
       StatusCode::UNIMPLEMENTED,
       {"shared memory", "'y'"}}};
  return faults;
}

TEST_F(InferTest, SaysWhatIsWrongWithARequestInTheWordsThatUsersKnow) {
  for (const Fault& fault : Faults()) {
    ModelInferRequest request = TwoSequences();
    fault.make(request);
    ModelInferResponse response;
    const grpc::Status status = Infer(request, response);
    EXPECT_EQ(status.error_code(), fault.code) << fault.what << ": " << status.error_message();
    for (const std::string& word : fault.words) {
      EXPECT_THAT(status.error_message(), HasSubstr(word)) << fault.what;
    }
  }
  EXPECT_TRUE(server_.WaitFor(InFlight("ModelInfer"), 0));
  EXPECT_EQ(Infer(TwoSequences()).outputs_size(), 1);
}

}  // namespace
}  // namespace linserve
