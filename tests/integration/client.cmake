# The clients as their users have them: installed, in their own processes.
set(client_site ${CMAKE_CURRENT_BINARY_DIR}/client_python)
set(client_environment PYTHONPATH=${client_site}/site PYTHONDONTWRITEBYTECODE=1
  ENCODERD_TEST_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
add_test(NAME client_python_install
         COMMAND ${CMAKE_CURRENT_LIST_DIR}/client_programs/install.sh ${PROJECT_SOURCE_DIR} ${client_site})
set_tests_properties(client_python_install PROPERTIES LABELS integration TIMEOUT 900 FIXTURES_SETUP client_python
  ENVIRONMENT "${client_environment}")
encoderd_python_test(NAME client_python_package SCRIPT python_package_test.py)

# Every test_NAME.py is client_NAME, but for what `tests/nightly.sh integrations` runs with the packages that it needs.
file(GLOB client_scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/client_programs/test_*.py)
list(REMOVE_ITEM client_scripts ${CMAKE_CURRENT_LIST_DIR}/client_programs/test_integrations.py
  ${CMAKE_CURRENT_LIST_DIR}/client_programs/test_table_packages.py)
foreach(script IN LISTS client_scripts)
  string(REGEX REPLACE ".*/test_(.*)\\.py$" "\\1" name ${script})
  encoderd_python_test(NAME client_${name} SCRIPT ${script} PYTEST ENVIRONMENT ${client_environment}
    FIXTURES client_python)
endforeach()
# In a root folder of Debian 13 it compiles Rust's gRPC, too.
set_tests_properties(client_languages PROPERTIES TIMEOUT 1800)
