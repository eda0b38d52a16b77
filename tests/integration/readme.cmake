# The commands of README.md and of the docs folders, run against a server; and the C++ example of client/docs/cpp.md,
# compiled unchanged except for the address: the environment names that of the server under test.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/client/docs/cpp.md)
file(READ ${PROJECT_SOURCE_DIR}/client/docs/cpp.md page)
set(mark "<!-- test: cpp -->\n```cpp\n")
string(LENGTH "${mark}" mark_length)
string(FIND "${page}" "${mark}" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "client/docs/cpp.md has no block marked <!-- test: cpp -->")
endif()
math(EXPR begin "${begin} + ${mark_length}")
string(SUBSTRING "${page}" ${begin} -1 page)
string(FIND "${page}" "```" end)
string(SUBSTRING "${page}" 0 ${end} example)
string(REPLACE "\"127.0.0.1:8400\"" "std::getenv(\"README_TARGET\")" example "${example}")
file(CONFIGURE OUTPUT readme_example.cc CONTENT "#include <cstdlib>\n${example}" @ONLY)

add_executable(readme_example ${CMAKE_CURRENT_BINARY_DIR}/readme_example.cc)
target_link_libraries(readme_example PRIVATE encoderd_options encoderd_client)
add_test(NAME readme_commands
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/readme_test.py
                 --programs ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(readme_commands PROPERTIES LABELS integration TIMEOUT 900)
