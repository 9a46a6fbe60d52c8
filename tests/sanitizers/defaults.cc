// These functions say what the sanitizers of a program do unless its environment says otherwise, so
// that a test that is run by hand finds what it finds under ctest.

extern "C" {

// SentencePiece's allocations come to AddressSanitizer as malloc(), its deallocations as delete:
// each goes through libstdc++, which finds only the latter replaced. Eight calls tell where memory
// came from; to note thirty takes a tenth of the tests' time.
const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "detect_stack_use_after_return=1:strict_string_checks=1:alloc_dealloc_mismatch=0:"
         "malloc_context_size=8";
}

const char* __ubsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "print_stacktrace=1";
}

const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1";
}

// The packages' gRPC, absl and protobuf are not instrumented: ThreadSanitizer sees none of the
// atomics and locks by which gRPC hands a call from one of its threads to another, and takes every
// access on the two sides for a race. So gRPC's own templates, compiled into our objects, and what
// runs below them do not count: reactions of a call, which gRPC starts one after another. What our
// own threads share is tested without gRPC, in core, batching, engine and by OutboxThreads.
const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:grpc::";
}
}
