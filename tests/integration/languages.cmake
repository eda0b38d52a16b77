# The contract as other languages have it.
add_test(NAME languages_proto
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_LIST_DIR}/languages/proto_test.py)
set_tests_properties(languages_proto PROPERTIES LABELS integration TIMEOUT 60)
