file(REMOVE_RECURSE ${WORK})
foreach(step IN ITEMS
        "${CMAKE_COMMAND};--install;${BUILD};--prefix;${WORK}/prefix"
        "${CMAKE_COMMAND};-S;${PROJECT};-B;${WORK}/build;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${COMPILER};-DCMAKE_CXX_FLAGS=${FLAGS}"
        "${CMAKE_COMMAND};--build;${WORK}/build"
        "${WORK}/build/outside;${WORK}"
        "${CMAKE_COMMAND};-S;${PROJECT}/writer;-B;${WORK}/writer;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${COMPILER};-DCMAKE_CXX_FLAGS=${FLAGS}"
        "${CMAKE_COMMAND};--build;${WORK}/writer"
        "${WORK}/writer/writer"
        "${WORK}/prefix/bin/millrace;version")
    execute_process(COMMAND ${step} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${step}\n${output}")
    endif()
endforeach()

# What is installed must not name the place where it was built.
file(GLOB packages ${WORK}/prefix/*/cmake/millrace/*.cmake ${WORK}/prefix/*/*/cmake/millrace/*.cmake)
if(NOT packages)
    message(FATAL_ERROR "no package file was installed")
endif()
foreach(package IN LISTS packages)
    file(READ ${package} text)
    string(FIND "${text}" "${BUILD}/lib" found)
    if(NOT found EQUAL -1)
        message(FATAL_ERROR "${package} names the build folder")
    endif()
endforeach()

# Who needs only SQLite links nothing else.
execute_process(COMMAND ldd ${WORK}/writer/writer OUTPUT_VARIABLE linked COMMAND_ERROR_IS_FATAL ANY)
if(linked MATCHES "libpq|librdkafka|libcurl|libcbor")
    message(FATAL_ERROR "a writer of SQLite outboxes links too much:\n${linked}")
endif()

# A component that does not exist is a fault of the project that asks for it.
file(WRITE ${WORK}/absent/CMakeLists.txt
    "cmake_minimum_required(VERSION 3.25)\nproject(absent LANGUAGES CXX)\nfind_package(millrace REQUIRED COMPONENTS pigeons)\n")
execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${WORK}/absent -B ${WORK}/absent/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
        -DCMAKE_CXX_COMPILER=${COMPILER}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "pigeons")
    message(FATAL_ERROR "an absent component was found:\n${output}")
endif()
