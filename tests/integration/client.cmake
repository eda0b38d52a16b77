# The clients as their users have them: installed, in a process of their own.
set(client_site ${CMAKE_CURRENT_BINARY_DIR}/client_python)
add_test(NAME client_python_install
         COMMAND ${CMAKE_CURRENT_LIST_DIR}/client_python/install.sh ${PROJECT_SOURCE_DIR} ${client_site})
set_tests_properties(client_python_install PROPERTIES FIXTURES_SETUP client_python)

add_test(NAME client_python_fake
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh -m pytest -q -p no:cacheprovider
                 ${CMAKE_CURRENT_LIST_DIR}/client_python/test_fake.py)
set_tests_properties(client_python_fake PROPERTIES FIXTURES_REQUIRED client_python)

foreach(test IN ITEMS client_python_install client_python_fake)
  set_tests_properties(${test} PROPERTIES LABELS integration TIMEOUT 300 ENVIRONMENT
    "PYTHONPATH=${client_site}/site;PYTHONDONTWRITEBYTECODE=1;ENCODERD_TEST_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endforeach()
