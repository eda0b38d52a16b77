# deploy/envoy without an Envoy; with one: tests/nightly.sh envoy.
add_test(NAME envoy_config
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/envoy/config_test.py)
set_tests_properties(envoy_config PROPERTIES LABELS integration TIMEOUT 60)
