#include "contract/lease_store_contract.hpp"
#include "postgres_lease_store.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <string>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

/// A schema of its own, reached directly or by a detour.
class postgres_world final : public lease_world {
public:
    explicit postgres_world(std::string url) : url_(std::move(url)) {}
    ~postgres_world() override {
        support::sql_connection(support::services().postgres)
            .execute("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE");
    }

    std::unique_ptr<lease_store> make(host& home) override {
        auto where = postgres::parse_server(url_).value();
        where.schema = schema_;
        return std::make_unique<postgres_lease_store>(
            home,
            postgres_lease_store_options{
                .where = std::move(where), .group = {"s", "g"}, .request_timeout = 10s}
        );
    }

private:
    std::string url_;
    std::string schema_ = support::unique_name("lease");
};

/// One for all tests: it pools transactions, so that each may meet any connection of the server.
std::string pooled() {
    static support::private_pgbouncer pooler(
        support::port_of(support::services().postgres), {"default_pool_size=3"}
    );
    return pooler.url();
}

INSTANTIATE_TEST_SUITE_P(
    Postgres,
    LeaseStore,
    testing::Values(
        lease_store_case{
            "postgres", [] { return std::make_unique<postgres_world>(support::services().postgres); }},
        lease_store_case{"pgbouncer", [] { return std::make_unique<postgres_world>(pooled()); }}
    ),
    [](const auto& which) { return which.param.name; }
);

}  // namespace
}  // namespace millrace::test
