file(REMOVE_RECURSE ${WORK})
foreach(step IN ITEMS
        "${CMAKE_COMMAND};--install;${BUILD};--prefix;${WORK}/prefix"
        "${CMAKE_COMMAND};-S;${PROJECT};-B;${WORK}/build;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${COMPILER};-DCMAKE_CXX_FLAGS=${FLAGS}"
        "${CMAKE_COMMAND};--build;${WORK}/build"
        "${WORK}/build/outside;${WORK}"
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
