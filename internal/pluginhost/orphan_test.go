package pluginhost_test

// hostMode makes the test binary a host of its own, so that it can be killed.
const hostMode = "PLUGINHOST_TEST_HOST"

func runHost() {}
