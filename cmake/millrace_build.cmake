# Compile settings shared by every target, and the helper that declares a library.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # without NDEBUG: invariants are checked in production, too

add_library(millrace_warnings INTERFACE)
target_compile_options(millrace_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Wno-missing-field-initializers
    $<$<BOOL:${MILLRACE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(millrace_warnings INTERFACE -Wthread-safety -Wreserved-identifier)
endif()

if(MILLRACE_SANITIZE)
    add_compile_options(-fsanitize=${MILLRACE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${MILLRACE_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # Instrumented, g++ 12 takes the inactive half of tl::expected for uninitialised.
        # The thread sanitizer warns of fences, which Boost.Asio uses in its headers.
        target_compile_options(millrace_warnings INTERFACE -Wno-maybe-uninitialized -Wno-tsan)
    endif()
endif()
if(MILLRACE_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

option(MILLRACE_TIDY "Let clang-tidy check every source that is compiled" OFF)
if(MILLRACE_TIDY)
    find_program(MILLRACE_CLANG_TIDY clang-tidy-14 REQUIRED)
    set(CMAKE_CXX_CLANG_TIDY ${MILLRACE_CLANG_TIDY} --quiet)
    # Part of every command, so that all is checked again after a change of the rules.
    foreach(rules IN ITEMS .clang-tidy tests/.clang-tidy)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${rules})
        file(SHA256 ${PROJECT_SOURCE_DIR}/${rules} hash)
        list(APPEND CMAKE_CXX_CLANG_TIDY --extra-arg=-DMILLRACE_RULES_${hash})
    endforeach()
endif()

find_program(MILLRACE_MOLD mold)
if(MILLRACE_MOLD)
    add_link_options(-fuse-ld=mold)
endif()

# millrace_library(<name> ROOT <folder> LINK <targets>): a static library `millrace_<name>` of all sources below
# the folder, which is its include root.
function(millrace_library name)
    cmake_parse_arguments(arg "" "ROOT" "LINK" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${arg_ROOT}/*.cpp)
    set_property(GLOBAL APPEND PROPERTY MILLRACE_LIBRARIES millrace_${name})
    if(NOT sources)
        add_library(millrace_${name} INTERFACE)
        target_include_directories(millrace_${name} INTERFACE
            $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/${arg_ROOT}>)
        target_link_libraries(millrace_${name} INTERFACE ${arg_LINK})
        return()
    endif()
    add_library(millrace_${name} STATIC ${sources})
    set_target_properties(millrace_${name} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON)
    target_include_directories(millrace_${name} PUBLIC
        $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/${arg_ROOT}>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(millrace_${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:millrace_warnings>)
endfunction()
