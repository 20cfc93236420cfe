# Deliberate faults in the core, for the tests of the simulation's oracles: the shipped sources know nothing of
# them.

# millrace_patched_simulation(<name> <source> <from> <to> <promise broken ...>): a simulation in which the one
# place `from` of the source reads `to`, and a test that some seed reports it in one of the words given. Only that
# source is compiled again: its object comes before the library's. `from` must match exactly once.
function(millrace_patched_simulation name source from to)
    file(READ ${PROJECT_SOURCE_DIR}/${source} text)
    string(FIND "${text}" "${from}" first)
    string(FIND "${text}" "${from}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "the patch ${name} must match ${source} exactly once; bring it up to date")
    endif()
    string(REPLACE "${from}" "${to}" text "${text}")
    cmake_path(GET source FILENAME file)
    set(patched ${CMAKE_CURRENT_BINARY_DIR}/patched/${name}/${file})
    file(CONFIGURE OUTPUT ${patched} CONTENT "${text}" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${source})
    add_executable(sim_${name} ${patched} $<TARGET_OBJECTS:sim_until_caught>)
    target_link_libraries(sim_${name} PRIVATE millrace_sim)
    set_target_properties(sim_${name} PROPERTIES CXX_CLANG_TIDY "")  # faults on purpose
    add_dependencies(sim_patched sim_${name})
    add_test(NAME sim_patched.${name} COMMAND sim_${name} ${ARGN})
    set_tests_properties(sim_patched.${name} PROPERTIES LABELS sim TIMEOUT 120)
endfunction()
