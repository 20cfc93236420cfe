#include "outbox_check.hpp"

#include "bytes_shown.hpp"
#include "commands.hpp"
#include "json_text.hpp"
#include "output.hpp"
#include "schemas_section.hpp"
#include "settings.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::app {

namespace {

void check_check(const settings& values, faults& found) {
    check_url(values, "outbox", url_role::outbox, found);
}

std::string_view name_of(row_fate fate) {
    switch (fate) {
        case row_fate::stops:
            return "stops";
        case row_fate::waits:
            return "waits";
        default:
            return "parked";
    }
}

std::string row_json(const unfit_row& row) {
    return fmt::format(
        R"({{"id":{},"topic":{},{},"fate":"{}","reason":{},"error":{}}})",
        row.id.value(),
        json_string(row.topic),
        field_json("key", row.key),
        name_of(row.fate),
        json_string(row.reason),
        json_string(row.detail)
    );
}

std::string report_json(const outbox_check_report& report) {
    std::string rows;
    for (const unfit_row& row : report.first)
        rows += (rows.empty() ? "" : ",\n ") + row_json(row);
    return fmt::format(
        R"({{"rows":{},"fit":{},"parked":{},"waiting":{},"stopping":{},"first":[{}]}})"
        "\n",
        report.rows,
        report.fit,
        report.parked,
        report.waiting,
        report.stopping,
        rows
    );
}

std::string report_text(const outbox_check_report& report) {
    std::string text = fmt::format(
        "looked at {}: {} fit the rules, {} would be parked, {} would wait{}; no rule concerns the others\n",
        counted(report.rows, "row"),
        report.fit,
        report.parked,
        report.waiting,
        report.stopping > 0 ? fmt::format(", {} would stop the relay", report.stopping) : ""
    );
    if (report.first.empty()) return text;
    table out({"id", "topic", "key", "fate", "reason", "error"});
    for (const unfit_row& row : report.first) {
        out.add(
            {fmt::format("{}", row.id.value()),
             in_quotes(row.topic),
             shown(row.key),
             std::string{name_of(row.fate)},
             row.reason,
             row.detail}
        );
    }
    return text + out.text();
}

exit_status check_rows(const settings& values) {
    if (values.schemas() == nullptr) {
        return complain(error{
            errc::invalid_config,
            retry_advice::never,
            false,
            fmt::format(
                "{}: the file has no section \"schemas\", so nothing would be encoded", values.text("config")
            )});
    }
    outbox_check_settings set;
    set.outbox = outbox_of(values);
    set.schemas = schema_settings_of(*values.schemas());
    set.on_poison = policy_of(values.text("on-poison"));
    set.listed_max = values.count("limit");
    set.wait = values.duration("wait");
    const auto report = check_outbox(set, null_log());
    if (!report) return complain(report.error());
    const auto printed = print(values.flag("json") ? report_json(*report) : report_text(*report));
    return report->parked + report->waiting + report->stopping > 0 ? exit_status::failed : printed;
}

}  // namespace

void add_outbox_check_command(std::vector<command_spec>& list) {
    option_spec file{
        .name = "config",
        .placeholder = "FILE",
        .meaning = "The relay's configuration; its schemas, outbox and on_poison are used",
        .required = true,
        .in_file = false};
    list.push_back(
        {.path = "outbox check",
         .about = "Encode what is in an outbox without sending it, and list what would be parked; exit 1 if "
                  "anything would be, or would wait",
         .example = "millrace outbox check --outbox sqlite:shop.db --config millrace.yaml",
         .options =
             {outbox_option(),
              std::move(file),
              poison_option(),
              {.name = "limit",
               .kind = option_kind::count,
               .placeholder = "N",
               .fallback = "100",
               .meaning = "Rows that are listed; all are counted",
               .most = "100000"},
              time_option("wait", "10s", "0s", "10m", "Longest wait for the schema registry, all in all"),
              json_option()},
         .check = check_check,
         .run = check_rows,
         .takes_schemas = true}
    );
}

}  // namespace millrace::app
