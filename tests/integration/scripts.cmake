# The scripts of deploy/ on their bad days; needs no build and no network.
add_test(NAME deploy_scripts
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/scripts_test.py)
set_tests_properties(deploy_scripts PROPERTIES LABELS integration TIMEOUT 120)
