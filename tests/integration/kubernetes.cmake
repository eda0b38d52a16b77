# deploy/kubernetes without a cluster: schemas, references, a server with the flags of the pod.
add_test(NAME kubernetes
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh
                 ${CMAKE_CURRENT_SOURCE_DIR}/kubernetes/manifests_test.py --server=$<TARGET_FILE:encoderd_fake_server>)
set_tests_properties(kubernetes PROPERTIES LABELS integration TIMEOUT 300)
add_test(NAME kubernetes_order
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/kubernetes/order_test.py)
set_tests_properties(kubernetes_order PROPERTIES LABELS integration TIMEOUT 120)
