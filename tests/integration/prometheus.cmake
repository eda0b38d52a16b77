# What deploy/ gives to Prometheus, Grafana and Compose; a live scrape of the server.
add_test(NAME monitoring
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh
                 ${CMAKE_CURRENT_SOURCE_DIR}/prometheus/monitoring_test.py --server=$<TARGET_FILE:encoderd_fake_server>)
set_tests_properties(monitoring PROPERTIES LABELS integration TIMEOUT 300)
