# deploy/kubernetes without a cluster: schemas, references, a server with the flags of the pod.
encoderd_python_test(NAME kubernetes SCRIPT kubernetes/manifests_test.py
  ARGS --server=$<TARGET_FILE:encoderd_fake_server>)
encoderd_python_test(NAME kubernetes_order SCRIPT kubernetes/order_test.py)
encoderd_python_test(NAME kubernetes_page SCRIPT kubernetes/page_test.py)
