#include "text/shell.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(ShellQuoted, AShellReadsTheWordAsItIs) {
    EXPECT_EQ(
        shell_quoted("postgresql://u:***@h/d?table=a.b&x=$y"), "'postgresql://u:***@h/d?table=a.b&x=$y'"
    );
    EXPECT_EQ(shell_quoted("it's"), R"('it'\''s')");
    EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace millrace
