# What deploy/ gives to Prometheus, Grafana and Compose; a live scrape of the server.
encoderd_python_test(NAME monitoring SCRIPT prometheus/monitoring_test.py
  ARGS --server=$<TARGET_FILE:encoderd_fake_server>)
