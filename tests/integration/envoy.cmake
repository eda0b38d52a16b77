# deploy/envoy without an Envoy; with one: tests/nightly.sh envoy.
encoderd_python_test(NAME envoy_config SCRIPT envoy/config_test.py)
