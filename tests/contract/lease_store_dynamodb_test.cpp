#include "contract/dynamodb_fixture.hpp"
#include "contract/lease_store_contract.hpp"

#include <string>

namespace millrace::test {
namespace {

class dynamodb_world final : public lease_world {
public:
    explicit dynamodb_world(std::string endpoint) : endpoint_(std::move(endpoint)) {}
    ~dynamodb_world() override {
        (void
        )dynamodb_call(*dynamodb_client(endpoint_), "DeleteTable", aws::dynamodb::describe_table(table_));
    }

    std::unique_ptr<lease_store> make(host& home) override {
        return std::make_unique<dynamodb_lease_store>(
            home, dynamodb_client(endpoint_), dynamodb_options(table_, endpoint_)
        );
    }

private:
    std::string endpoint_;
    std::string table_ = support::unique_name("lease");
};

INSTANTIATE_TEST_SUITE_P(
    Dynamodb,
    LeaseStore,
    testing::Values(
        lease_store_case{
            "dynalite",
            [] { return std::make_unique<dynamodb_world>(support::services().dynamodb_endpoint); }},
        lease_store_case{
            "moto", [] { return std::make_unique<dynamodb_world>(support::services().moto_endpoint); }}
    ),
    [](const auto& which) { return which.param.name; }
);

}  // namespace
}  // namespace millrace::test
