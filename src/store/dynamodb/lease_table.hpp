/// The table behind a `dynamodb_lease_store`: made when it is missing, and looked at when it is refused.
///
/// Belongs to the host's thread; the client must outlive it.
#pragma once

#include "dynamodb/replies.hpp"
#include "port/host.hpp"
#include "table_client.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// Which table it is, for requests and for people.
struct lease_table_name {
    std::string table;
    std::string region;
    std::string endpoint;  ///< Empty: AWS's own.
    std::string shown;     ///< As messages name it.
};

class lease_table {
public:
    /// A table that is being made is waited for up to `patience`.
    lease_table(host& home, table_client& client, const lease_table_name& name, milliseconds patience);
    ~lease_table();

    /// Makes the table unless it is there, at once from several processes or not, and waits until it can be
    /// used. Callers that come meanwhile share the outcome. `permission_denied` shows the command for who
    /// may.
    void ensure(completion<void> done);

    /// Whether the table is one of Millrace's, after a request was refused as invalid: the error says what is
    /// wrong with its keys, and nothing when it is not that.
    void look_at_keys(std::function<void(std::optional<error>)> done);

    /// Has DynamoDB delete what has expired, once; where that is not to be had, warns.
    void let_rows_expire();

private:
    void look();
    void looked(const table_client::outcome<aws::dynamodb::table_description>& found);
    void make();
    void again(const std::string& why);
    void finish(result<void> outcome);
    void warn_of_expiry(const std::string& why);
    [[nodiscard]] error not_allowed(std::string_view action, const std::string& why) const;
    [[nodiscard]] std::optional<error> judge(const aws::dynamodb::table_description& found) const;

    host& home_;
    table_client& client_;
    const lease_table_name& name_;
    milliseconds patience_;
    lifetime alive_;

    std::vector<completion<void>> waiting_;  // of `ensure`; empty while nobody asked
    mono_time give_up_at_{};
    bool made_{false};  // by us or by somebody else: it is on its way
    std::optional<host::timer> timer_;
    bool expiry_seen_to_{false};
};

/// The aws command line that makes the table.
[[nodiscard]] std::string create_command(const lease_table_name& name);

}  // namespace millrace
