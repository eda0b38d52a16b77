# The scripts of deploy/ on their bad days; needs no build and no network. Then the checkout inside another project.
add_test(NAME deploy_scripts
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/scripts_test.py)
set_tests_properties(deploy_scripts PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME subproject
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/subproject_test.py)
set_tests_properties(subproject PROPERTIES LABELS integration TIMEOUT 300)
