# What other languages generate code from: google/rpc as it is published.
add_test(NAME proto
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/proto_test.py)
set_tests_properties(proto PROPERTIES LABELS integration TIMEOUT 60)

# Nothing that callers of the last release rely on is gone from the contract.
add_test(NAME contract
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/contract_test.py)
set_tests_properties(contract PROPERTIES LABELS integration TIMEOUT 60)

# The scripts of deploy/ on their bad days; needs no build and no network. Then the checkout inside another project.
add_test(NAME deploy_scripts
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/scripts_test.py)
set_tests_properties(deploy_scripts PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME quickstart
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/quickstart_test.py)
set_tests_properties(quickstart PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME package_scripts
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/package_scripts_test.py)
set_tests_properties(package_scripts PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME nightly_script
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/nightly_script_test.py)
set_tests_properties(nightly_script PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME ccache COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/ccache_test.py)
add_test(NAME harden COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/harden_test.py)
set_tests_properties(ccache harden PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME round_weights
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/round_weights_test.py)
set_tests_properties(round_weights PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME subproject
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/subproject_test.py)
set_tests_properties(subproject PROPERTIES LABELS integration TIMEOUT 300)

# What makes the image's file system; the image itself is built by tests/nightly.sh.
add_test(NAME image_root
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/container/root_test.py)
set_tests_properties(image_root PROPERTIES LABELS integration TIMEOUT 120)

# tests/gpu.sh: its options, folders and streams; then over programs that hang, die or lie, with the real engine where this build has it.
add_test(NAME gpu_script_options
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/gpu_script_options_test.py)
set_tests_properties(gpu_script_options PROPERTIES LABELS integration TIMEOUT 120)
add_test(NAME gpu_script
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/gpu_script_test.py)
# COST: the longest tests begin first, in a first run too.
set_tests_properties(gpu_script PROPERTIES LABELS integration TIMEOUT 600 COST 200)
if(ENCODERD_BENCH)
  set_tests_properties(gpu_script PROPERTIES
    ENVIRONMENT ENCODERD_TEST_ENGINE_BENCH=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/engine_bench)
endif()
