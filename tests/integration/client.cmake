# The clients as their users have them: installed, in their own processes.
set(client_site ${CMAKE_CURRENT_BINARY_DIR}/client_python)
add_test(NAME client_python_install
         COMMAND ${CMAKE_CURRENT_LIST_DIR}/client_programs/install.sh ${PROJECT_SOURCE_DIR} ${client_site})
set_tests_properties(client_python_install PROPERTIES FIXTURES_SETUP client_python)
set(client_tests client_python_install)
add_test(NAME client_python_package
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_LIST_DIR}/python_package_test.py)
set_tests_properties(client_python_package PROPERTIES LABELS integration TIMEOUT 300)

foreach(name IN ITEMS fake async connection frozen proxy drop_in similarity vectors prompts options misuse own_faults tables too_large security_options tls tokens stream stream_faults fingerprint stalls retry types own_server encoderctl bulk bench server secure_server sentence_transformers server_programs languages load)
  add_test(NAME client_${name}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh -m pytest -q -p no:cacheprovider
                   ${CMAKE_CURRENT_LIST_DIR}/client_programs/test_${name}.py)
  set_tests_properties(client_${name} PROPERTIES FIXTURES_REQUIRED client_python)
  list(APPEND client_tests client_${name})
endforeach()
set_tests_properties(${client_tests} PROPERTIES LABELS integration TIMEOUT 900 ENVIRONMENT
  "PYTHONPATH=${client_site}/site;PYTHONDONTWRITEBYTECODE=1;ENCODERD_TEST_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
# In a root folder of Debian 13 it compiles Rust's gRPC, too.
set_tests_properties(client_languages PROPERTIES TIMEOUT 1800)
