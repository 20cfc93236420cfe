/// The schemas of a relay: one registry, one cache and one set of rules for all its outboxes.
///
/// Lives on the loop. A build without schemas refuses to open them.
#pragma once

#include "port/event_sink.hpp"
#include "port/host.hpp"

#include <millrace/error.hpp>
#include <millrace/schemas.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace millrace {

class schemas {
public:
    virtual ~schemas() = default;

    /// What goes to `inner` is encoded first. The schemas outlive it.
    [[nodiscard]] virtual std::unique_ptr<event_sink> around(std::unique_ptr<event_sink> inner) = 0;

    /// At the start: `lacking` is called with what only the registry can tell to be a fault of the rules.
    virtual void look(std::function<void(const error&)> lacking) = 0;

    /// Nothing while the registry answers.
    [[nodiscard]] virtual std::optional<error> trouble() const = 0;
    [[nodiscard]] virtual schema_status status() const = 0;
};

/// `settings` are valid; files are read at once. The registry is not asked yet.
[[nodiscard]] result<std::shared_ptr<schemas>> open_schemas(const schema_settings& settings, host& home);

}  // namespace millrace
