# `find_package(millrace)` gives `millrace::millrace`.

include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY MILLRACE_LIBRARIES)
add_library(millrace_millrace INTERFACE)
target_link_libraries(millrace_millrace INTERFACE millrace_runtime)
add_library(millrace::millrace ALIAS millrace_millrace)

foreach(library IN LISTS libraries ITEMS millrace_millrace)
    string(REGEX REPLACE "^millrace_" "" short ${library})
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${short})
endforeach()
install(TARGETS ${libraries} millrace_millrace EXPORT millrace ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(left_out "")
if(NOT MILLRACE_WITH_POSTGRES)
    set(left_out PATTERN outbox_postgres.hpp EXCLUDE PATTERN postgres_checkpoint.hpp EXCLUDE)
endif()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${left_out})
install(EXPORT millrace NAMESPACE millrace:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
configure_package_config_file(cmake/millraceConfig.cmake.in ${CMAKE_BINARY_DIR}/millraceConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/millraceConfig.cmake ${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
