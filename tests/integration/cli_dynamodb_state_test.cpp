#include "cli_state.hpp"
#include "support/services.hpp"

#include <cstdlib>

namespace millrace::cli {
namespace {

/// A table of its own on dynalite, which takes any keys.
struct CliDynamodbState : CliState {
    CliDynamodbState()
        : CliState(
              "dynamodb://eu-west-1/" + support::unique_name("state") +
              "?endpoint=" + support::services().dynamodb_endpoint
          ) {
        ::setenv("AWS_ACCESS_KEY_ID", "123456789012", 1);
        ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    }
};

TEST_F(CliDynamodbState, ResumesWhereItWas) {
    resumes_where_it_was();
}

TEST_F(CliDynamodbState, IsSharedByWorkersAndTakenOverFromADeadOne) {
    is_shared_by_workers();
}

}  // namespace
}  // namespace millrace::cli
